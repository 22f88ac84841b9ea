// A short random run, over and over, in which one call to the upstream or its pages fails: the
// first, then the second, and so on for all there are. Every step is checked against the model, and
// at the end everything is given back.

#include <gtest/gtest.h>

#include <cstdint>
#include <ostream>
#include <string>
#include <tuple>

#include "allocator/pool_fixture.hpp"
#include "allocator/pool_random_run.hpp"
#include "support/log_capture.hpp"
#include "support/random_seed.hpp"
#include "support/sanitized.hpp"

namespace weir {
namespace {

using testing::Fault;
using testing::FaultyUpstream;
using testing::RandomRun;
using testing::RandomRunOptions;

/// Of a call that does many things, each of them fails once: what comes before it in the same call
/// is done.
struct FaultyCall {
  const char* name;
  void (*arm)(FaultyUpstream&, Fault);
  friend std::ostream& operator<<(std::ostream& out, const FaultyCall& call) {
    return out << call.name;
  }
};

constexpr FaultyCall kOfSegments[] = {
    {"refused", [](FaultyUpstream& upstream, Fault fault) { upstream.refuse_calls(fault); }},
    {"broken", [](FaultyUpstream& upstream, Fault fault) { upstream.throw_calls(fault); }}};
constexpr FaultyCall kOfPages[] = {
    {"reserve", [](FaultyUpstream& up, Fault fault) { up.pages()->refuse_reserve(fault); }},
    {"create", [](FaultyUpstream& up, Fault fault) { up.pages()->refuse_create(fault); }},
    {"create_broken", [](FaultyUpstream& up, Fault fault) { up.pages()->throw_create(fault); }},
    {"map", [](FaultyUpstream& up, Fault fault) { up.pages()->refuse_map(fault); }},
    {"unmap", [](FaultyUpstream& up, Fault fault) { up.pages()->refuse_unmap(fault); }}};

using PoolAndCall = std::tuple<PoolKind, FaultyCall>;

class EachFault : public ::testing::TestWithParam<PoolAndCall> {
 protected:
  /// `options` with each call failing; how many there were.
  static std::uint64_t fail_each(RandomRunOptions options) {
    const FaultyCall& call = std::get<FaultyCall>(GetParam());
    for (std::uint64_t n = 1;; ++n) {
      SCOPED_TRACE("fault " + std::to_string(n));
      std::uint64_t struck = 0;
      options.arm = [&](FaultyUpstream& upstream) { call.arm(upstream, Fault::at(n)); };
      options.mend = [&](FaultyUpstream& upstream) { struck = upstream.struck(); };
      RandomRun(options).run();
      if (struck == 0 || HasFailure()) return n - 1;
    }
  }
};

TEST_P(EachFault, LeavesNothingBehindAndTheStatisticsRight) {
  const std::uint64_t seed = testing::random_seed();
  SCOPED_TRACE(testing::seed_message(seed));
  const testing::LogCapture log;  // what cannot be given back is told there
  constexpr std::uint64_t kRuns = WEIR_TEST_SANITIZED != 0 ? 1 : 3;
  std::uint64_t failed = 0;
  for (std::uint64_t run = 0; run < kRuns && !HasFailure(); ++run) {
    RandomRunOptions options{.kind = std::get<PoolKind>(GetParam()),
                             .faults = true,
                             .seed = seed + run,
                             .steps = 100,
                             .budget = kib(32)};
    failed += fail_each(options);
    options.budget = mib(8);  // several segments, and blocks of both areas
    options.scale = 6;
    failed += fail_each(options);
  }
  EXPECT_GT(failed, 0U) << "there was no such call";
}

std::string pool_and_call_name(const ::testing::TestParamInfo<PoolAndCall>& info) {
  return std::string(to_string(std::get<PoolKind>(info.param))) + "_" +
         std::get<FaultyCall>(info.param).name;
}

INSTANTIATE_TEST_SUITE_P(Segments, EachFault,
                         ::testing::Combine(::testing::Values(PoolKind::kUnpooled, PoolKind::kNaive,
                                                              PoolKind::kRound, PoolKind::kBestFit),
                                            ::testing::ValuesIn(kOfSegments)),
                         pool_and_call_name);
INSTANTIATE_TEST_SUITE_P(Pages, EachFault,
                         ::testing::Combine(::testing::Values(PoolKind::kPaged),
                                            ::testing::ValuesIn(kOfPages)),
                         pool_and_call_name);

}  // namespace
}  // namespace weir
