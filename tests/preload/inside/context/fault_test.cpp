// A driver that fails: no block is handed out early, nothing hangs, and the program gets a code.

#include <ostream>

#include "tests/preload/inside/inside.hpp"

namespace weir::preload::testing {
namespace {

constexpr CUresult kCode = CUDA_ERROR_LAUNCH_FAILED;

struct FaultCase {
  const char* call;
  WeirStandinLasting lasting;
  friend std::ostream& operator<<(std::ostream& out, const FaultCase& the_case) {
    return out << the_case.call << (the_case.lasting == kWeirStandinOnce ? "Once" : "FromThenOn");
  }
};

class DriverFault : public Inside, public ::testing::WithParamInterface<FaultCase> {
 protected:
  static void break_it() { weir_standin_fail(GetParam().call, 1, kCode, GetParam().lasting); }
  static void expect_allowed(CUresult code) {
    EXPECT_TRUE(code == CUDA_SUCCESS || code == CUDA_ERROR_OUT_OF_MEMORY || code == kCode) << code;
  }
  /// Makes more requests than fit in the budget, in both ways; none may get `busy`.
  static void ask_for_all(CUdeviceptr busy, CUstream stream) {
    for (int i = 0; i < 6; ++i) {
      CUdeviceptr pointer = 0;
      const CUresult code =
          i % 2 == 0 ? cuMemAlloc(&pointer, kMib) : cuMemAllocAsync(&pointer, kMib, stream);
      expect_allowed(code);
      EXPECT_EQ(code == CUDA_SUCCESS, pointer != 0);
      EXPECT_NE(pointer, busy);
    }
  }
  /// Breaks the driver, has the block freed, and checks that no request gets it early, neither then
  /// nor once the driver works again.
  template <typename Free>
  static void expect_not_early(CUdeviceptr block, CUstream stream, const Free& free_it) {
    break_it();
    free_it();
    ask_for_all(block, stream);
    weir_standin_clear_faults();
    ask_for_all(block, stream);
    expect_statistics_agree();
  }
  /// Checks that the program continues: frees succeed, and the accounting is consistent.
  static void expect_statistics_agree() {
    const Statistics now = statistics();
    EXPECT_EQ(now.allocated.current + now.awaiting.current + now.cached.current,
              now.reserved.current);
    EXPECT_EQ(arena().account().used(), now.reserved.current);
    EXPECT_EQ(weir_standin_used(0), now.reserved.current.count);
  }
};

TEST_P(DriverFault, GivesNoBlockEarlyThatCuMemFreeFreed) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "4MiB"}, {"WEIR_MAX_WAIT", "20ms"}}));
  const CUstream stream = make_stream();
  const CUstream other = make_stream();
  const CUdeviceptr block = allocate(kMib);
  keep_busy(stream, block);
  expect_not_early(block, other, [&] { free(block); });
  weir_standin_release(stream);
}

TEST_P(DriverFault, GivesNoBlockEarlyThatAnotherStreamFreed) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "4MiB"}, {"WEIR_MAX_WAIT", "20ms"}}));
  const CUstream home = make_stream();
  const CUstream busy = make_stream();
  const CUdeviceptr block = allocate(kMib, home);
  keep_busy(busy, block);
  expect_not_early(block, home, [&] { free(block, busy); });
  weir_standin_release(busy);
}

TEST_P(DriverFault, GivesNoBlockEarlyWhoseStreamIsDestroyed) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "4MiB"}, {"WEIR_MAX_WAIT", "20ms"}}));
  const CUstream stream = make_stream();
  const CUstream other = make_stream();
  const CUdeviceptr in_order = allocate(kMib, stream);
  const CUdeviceptr for_all = allocate(kMib);
  weir_standin_hold(weir_standin_all_streams());
  keep_busy(stream, in_order);
  ASSERT_EQ(cuMemsetD8Async(for_all, 1, 1, stream), CUDA_SUCCESS);
  free(in_order, stream);
  expect_not_early(for_all, other, [&] {
    // It stays where its last work cannot be fenced, and the program gets an error.
    expect_allowed(cuStreamDestroy(stream));
    free(for_all);
  });
}

TEST_P(DriverFault, AHandoverThatFailsGivesNothing) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "1MiB"}, {"WEIR_MAX_WAIT", "20ms"}}));
  const CUstream stream = make_stream();
  const CUstream other = make_stream();
  const CUdeviceptr block = allocate(kMib, stream);
  keep_busy(stream, block);
  free(block, stream);
  break_it();
  weir_standin_clear_counters();
  CUdeviceptr pointer = 0;
  const CUresult code = cuMemAllocAsync(&pointer, kMib, other);
  expect_allowed(code);
  if (code == CUDA_SUCCESS) {
    // Then it waits on the device, after any failure.
    EXPECT_EQ(pointer, block);
    EXPECT_GE(weir_standin_calls("cuStreamWaitEvent"), 1U);
    EXPECT_NE(weir_standin_pending(other), 0U);
  } else {
    EXPECT_EQ(statistics().handovers, 0U);
    // It still belongs to its own stream.
    weir_standin_clear_faults();
    EXPECT_EQ(allocate(kMib, stream), block);
  }
  expect_statistics_agree();
}

TEST_P(DriverFault, ARequestThatGrowsGetsTheCode) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "4MiB"}, {"WEIR_MAX_WAIT", "20ms"}}));
  free(allocate(kMib));
  settle();
  break_it();
  CUdeviceptr pointer = 0;
  const CUresult code = cuMemAlloc(&pointer, 2 * kMib);
  const bool its_own = std::string(GetParam().call) == "cuMemAlloc";
  EXPECT_EQ(code, its_own ? kCode : CUDA_SUCCESS);
  weir_standin_clear_faults();
  free(allocate(2 * kMib));
  expect_statistics_agree();
}

std::vector<FaultCase> fault_cases() {
  std::vector<FaultCase> cases;
  for (const char* call :
       {"cuMemAlloc", "cuMemFree", "cuEventCreate", "cuEventRecord", "cuEventQuery",
        "cuStreamQuery", "cuStreamWaitEvent", "cuStreamIsCapturing"}) {
    cases.push_back({call, kWeirStandinOnce});
    cases.push_back({call, kWeirStandinFromThenOn});
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Of, DriverFault, ::testing::ValuesIn(fault_cases()),
                         ::testing::PrintToStringParamName());

class DeviceFull : public Inside {};

TEST_F(DeviceFull, WhatTheCacheHasIsGivenBackWhereTheDeviceItselfHasNoMore) {
  expect_refused("cuMemAlloc", CUDA_ERROR_OUT_OF_MEMORY);
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "64MiB"}, {"WEIR_STANDIN_MEMORY", "64M"}}));
  free(allocate(16 * kMib));
  settle();
  weir_standin_set_memory(32 * kMib);  // somebody else has the rest
  (void)allocate(32 * kMib);
  EXPECT_EQ(weir_standin_used(0), 32 * kMib);
  EXPECT_EQ(arena().account().used(), mib(32)) << "what the driver refused at first is not counted";
}

TEST_F(DeviceFull, AFreeThatTheDriverRefusesStaysInTheAccounting) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "64MiB"}}));
  free(allocate(kMib));
  settle();
  weir_standin_fail("cuMemFree", 1, kCode, kWeirStandinOnce);
  (void)trim(0);
  EXPECT_EQ(arena().account().used(), mib(1));
  EXPECT_EQ(weir_standin_used(0), kMib);
}

}  // namespace
}  // namespace weir::preload::testing
