// Pools over a GPU's memory, on the stand-in driver, with each driver call failing once: a short
// random run for the first call, then for the second, and so on. At the end the driver has
// everything back.

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "allocator/memory/upstream_cuda.hpp"
#include "allocator/pool_fixture.hpp"
#include "allocator/pool_random_run.hpp"
#include "standin/standin.hpp"
#include "support/log_capture.hpp"
#include "support/random_seed.hpp"

namespace weir {
namespace {

using testing::FaultyUpstream;
using testing::PageKind;
using testing::RandomRun;
using testing::RandomRunOptions;

struct DriverCall {
  PoolKind kind;
  bool pinned;  ///< over page-locked memory of the host, in place of the device's
  const char* call;
  CUresult code;

  [[nodiscard]] std::string name() const {
    return std::string(to_string(kind)) + "_" + call +
           (code == CUDA_ERROR_OUT_OF_MEMORY ? "_has_no_more" : "_breaks");
  }
  friend std::ostream& operator<<(std::ostream& out, const DriverCall& each) {
    return out << each.name();
  }
};

/// Without calls that only release: what they cannot release stays with the driver, and in the
/// upstream's accounting (CudaPagesTest.ThatCannotBeGivenBackStayInTheAccounting).
std::vector<DriverCall> driver_calls() {
  std::vector<DriverCall> calls;
  for (const CUresult code : {CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_INVALID_VALUE}) {
    for (const PoolKind kind : testing::kAllKinds) {
      if (kind == PoolKind::kPaged) continue;
      calls.push_back({kind, false, "cuMemAlloc", code});
      calls.push_back({kind, true, "cuMemHostAlloc", code});
    }
    calls.push_back({PoolKind::kPaged, false, "cuMemCreate", code});
  }
  for (const char* call : {"cuMemAddressReserve", "cuMemMap", "cuMemSetAccess", "cuMemUnmap"}) {
    calls.push_back({PoolKind::kPaged, false, call, CUDA_ERROR_INVALID_VALUE});
  }
  return calls;
}

class EachDriverFault : public ::testing::TestWithParam<DriverCall> {
 protected:
  EachDriverFault() { weir_standin_reset(); }
  ~EachDriverFault() override {
    EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess) << "a stale error was left behind";
    weir_standin_reset();
  }
  /// Runs with the `n`-th call failing. Returns whether there were so many.
  static bool fail_nth(std::uint64_t n, std::uint64_t seed) {
    SCOPED_TRACE("call " + std::to_string(n));
    const auto& [pool, pinned, call, code] = GetParam();
    const PageKind kind =
        pinned ? testing::kinds_without_pages().front() : testing::page_kinds().front();
    const auto over = kind.make(mib(64));
    std::uint64_t made = 0;
    RandomRunOptions options{.kind = pool, .faults = true, .seed = seed, .steps = 60};
    if (pool == PoolKind::kPaged)
      options.steps = 300;  // otherwise hardly any page would be unmapped
    options.budget = mib(16);
    options.scale = 6;
    options.over = over.get();
    options.touch = true;
    options.arm = [&call = call, &code = code, n](FaultyUpstream&) {
      weir_standin_clear_counters();
      weir_standin_fail(call, n, static_cast<int>(code), kWeirStandinOnce);
    };
    options.mend = [&call = call, &made](FaultyUpstream&) {
      made = weir_standin_calls(call);
      weir_standin_clear_faults();
    };
    RandomRun(options).run();
    EXPECT_EQ(over->used(), Bytes{});
    return made >= n;
  }
  static void expect_driver_has_all_back() {
    const WeirStandinLive live = weir_standin_live();
    EXPECT_EQ(live.device_blocks, 0U);
    EXPECT_EQ(live.host_blocks, 0U);
    EXPECT_EQ(live.mappings, 0U);
    EXPECT_EQ(live.physical, 0U);
    EXPECT_EQ(live.reservations, 0U);
  }
};

TEST_P(EachDriverFault, LeavesNothingBehindAndTheStatisticsRight) {
  const std::uint64_t seed = testing::random_seed();
  SCOPED_TRACE(testing::seed_message(seed));
  const testing::LogCapture log;  // faults are told there
  constexpr std::uint64_t kRuns = 2;
  std::uint64_t failed = 0;
  for (std::uint64_t run = 0; run < kRuns; ++run) {
    for (std::uint64_t n = 1; fail_nth(n, seed + run) && !HasFailure(); ++n) {
      expect_driver_has_all_back();
      ++failed;
    }
  }
  EXPECT_GT(failed, 0U) << "there was no such call";
}

INSTANTIATE_TEST_SUITE_P(, EachDriverFault, ::testing::ValuesIn(driver_calls()),
                         [](const auto& each) { return each.param.name(); });

}  // namespace
}  // namespace weir
