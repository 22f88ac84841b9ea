// A budget that changes while the program runs.

#include <cmath>

#include "tests/preload/inside/inside.hpp"
#include "tests/support/log_capture.hpp"

namespace weir::preload::testing {
namespace {

class SetBudget : public Inside {
 protected:
  void SetUp() override { ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "64MiB"}})); }
  [[nodiscard]] static std::size_t told_total() {
    std::size_t free = 0;
    std::size_t total = 0;
    EXPECT_EQ(cuMemGetInfo(&free, &total), CUDA_SUCCESS);
    return total;
  }
  [[nodiscard]] static timeline::BudgetAnswer set(Bytes budget) {
    return arena().device().set_budget(budget, "a test");
  }
};
class SetBudgetUnder : public SetBudget {
  void SetUp() override {}
};

TEST_F(SetBudget, LoweringItGivesCachedMemoryBackAtOnce) {
  const CUdeviceptr kept = allocate(16 * kMib);
  free(allocate(24 * kMib));
  EXPECT_EQ(weir_standin_used(0), 40 * kMib);
  const timeline::BudgetAnswer answer = set(mib(32));
  EXPECT_EQ(answer.code, timeline::BudgetCode::kTaken);
  EXPECT_EQ(answer.before, mib(64));
  EXPECT_EQ(answer.after, mib(32));
  EXPECT_EQ(answer.used, mib(16));
  EXPECT_EQ(answer.total, gib(1));
  EXPECT_EQ(weir_standin_used(0), 16 * kMib);
  EXPECT_EQ(statistics().budget, mib(32));
  EXPECT_EQ(told_total(), 32 * kMib);
  EXPECT_EQ(free_bytes(), 16 * kMib);
  std::size_t total = 0;
  ASSERT_EQ(cuDeviceTotalMem(&total, 0), CUDA_SUCCESS);
  EXPECT_EQ(total, 32 * kMib);
  free(kept);
}

TEST_F(SetBudget, LoweredBeforeTheFirstRequestInStreamOrderItIsThatPoolsToo) {
  (void)allocate(kMib);
  EXPECT_EQ(set(mib(32)).code, timeline::BudgetCode::kTaken);
  const CUstream stream = make_stream();
  (void)allocate(4 * kMib, stream);
  CUdeviceptr more = 0;
  EXPECT_EQ(cuMemAllocAsync(&more, 32 * kMib, stream), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(set(mib(64)).code, timeline::BudgetCode::kTaken);
  EXPECT_EQ(cuMemAllocAsync(&more, 32 * kMib, stream), CUDA_SUCCESS);
}

TEST_F(SetBudget, CachedMemoryThatFitsInItStays) {
  free(allocate(8 * kMib));
  EXPECT_EQ(set(mib(16)).used, mib(8));
  EXPECT_EQ(weir_standin_used(0), 8 * kMib);
}

TEST_F(SetBudget, LiveMemoryAboveItGoesBackAsItIsFreed) {
  const CUdeviceptr first = allocate(16 * kMib);
  const CUdeviceptr second = allocate(20 * kMib);
  const CUdeviceptr third = allocate(8 * kMib);
  EXPECT_EQ(set(mib(16)).used, mib(44));
  EXPECT_EQ(try_allocate(kMib), CUDA_ERROR_OUT_OF_MEMORY) << "growth stops";
  free(first);
  EXPECT_EQ(weir_standin_used(0), 28 * kMib);
  free(second);
  EXPECT_EQ(weir_standin_used(0), 8 * kMib);
  EXPECT_FALSE(arena().device().trims_what_comes_free());
  free(third);
  EXPECT_EQ(weir_standin_used(0), 8 * kMib) << "it fits, and is kept as ever";
  EXPECT_EQ(try_allocate(12 * kMib), CUDA_SUCCESS);
}

TEST_F(SetBudget, WhatWorkStillUsesGoesBackOnceTheDeviceIsDoneWithIt) {
  const CUstream stream = make_stream();
  const CUdeviceptr block = allocate(32 * kMib);
  keep_busy(stream, block);
  free(block);
  EXPECT_EQ(set(mib(16)).used, mib(32)) << "not before";
  release_all();
  ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  // As the thread that publishes does.
  wait_until([] {
    arena().device().keep_budget();
    return weir_standin_used(0) == 0;
  });
}

TEST_F(SetBudgetUnder, RaisingItLetsWhatFailedSucceed) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "16MiB"}}));
  EXPECT_EQ(try_allocate(32 * kMib), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(set(mib(64)).code, timeline::BudgetCode::kTaken);
  EXPECT_EQ(try_allocate(32 * kMib), CUDA_SUCCESS);
  EXPECT_EQ(told_total(), 64 * kMib);
}

TEST_F(SetBudgetUnder, RaisingItLetsOneThatWaitsSucceed) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "16MiB"}, {"WEIR_MAX_WAIT", "3600s"}}));
  const CUstream stream = make_stream();
  const CUdeviceptr block = allocate(16 * kMib);
  keep_busy(stream, block);
  free(block);
  Arena& here = arena();
  const CUcontext context = current();
  CUresult code = CUDA_ERROR_UNKNOWN;
  std::thread waiter([&] {
    EXPECT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
    code = try_allocate(8 * kMib);
  });
  wait_until([&] { return here.pool().statistics().waits != 0; });
  EXPECT_EQ(here.device().set_budget(mib(32), "a test").after, mib(32));
  waiter.join();  // the device has come nowhere
  EXPECT_EQ(code, CUDA_SUCCESS);
}

TEST_F(SetBudget, OutOfRangeIsRefusedAndChangesNothing) {
  (void)allocate(kMib);
  for (const Bytes budget :
       {Bytes{0}, Bytes{1}, mib(1) - Bytes{1}, gib(1) + Bytes{1}, Bytes{~std::uint64_t{0}}}) {
    const timeline::BudgetAnswer answer = set(budget);
    EXPECT_EQ(answer.code, timeline::BudgetCode::kOutOfRange);
    EXPECT_EQ(answer.after, mib(64));
    EXPECT_FALSE(set_budget(0, budget));
    EXPECT_FALSE(set_budget(-1, budget));
  }
  EXPECT_EQ(told_total(), 64 * kMib);
  EXPECT_EQ(set(gib(1)).code, timeline::BudgetCode::kTaken);
  EXPECT_EQ(set(mib(1)).code, timeline::BudgetCode::kTaken);
}

TEST_F(SetBudgetUnder, AFractionLimitsItAndTheLowerOneHolds) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "512MiB"}}));
  EXPECT_TRUE(set_fraction(0, 0.25)) << "of 1 GiB, before any memory is used";
  EXPECT_EQ(told_total(), 256 * kMib);
  free(allocate(200 * kMib));
  EXPECT_TRUE(set_fraction(0, 0.125));
  EXPECT_EQ(weir_standin_used(0), 0U) << "what is cached above it goes back";
  EXPECT_EQ(try_allocate(200 * kMib), CUDA_ERROR_OUT_OF_MEMORY);
  const timeline::BudgetAnswer answer = set(mib(64));
  EXPECT_EQ(answer.before, mib(128));
  EXPECT_EQ(answer.after, mib(64));
  EXPECT_EQ(set(mib(256)).after, mib(128)) << "the fraction holds on";
  EXPECT_TRUE(set_fraction(0, 1));
  EXPECT_EQ(told_total(), 256 * kMib) << "what was set last";
  EXPECT_EQ(try_allocate(200 * kMib), CUDA_SUCCESS);
  EXPECT_TRUE(set_fraction(0, 0)) << "the least that a budget can be";
  EXPECT_EQ(told_total(), kMib);
}

TEST_F(SetBudget, AFractionOutOfRangeIsRefusedAndChangesNothing) {
  (void)allocate(kMib);
  for (const double fraction : {-0.1, 1.1, std::nan(""), HUGE_VAL}) {
    EXPECT_FALSE(set_fraction(0, fraction)) << fraction;
  }
  EXPECT_EQ(told_total(), 64 * kMib);
}

TEST_F(SetBudgetUnder, IsOfOneDeviceOrAllInUse) {
  expect_refused("cuDeviceTotalMem", CUDA_ERROR_INVALID_DEVICE);
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "64MiB"}, {"WEIR_STANDIN_DEVICES", "2"}}));
  EXPECT_FALSE(set_budget(-1, mib(8))) << "none is in use yet";
  (void)allocate(kMib);
  EXPECT_TRUE(set_budget(1, mib(8))) << "before it is used";
  EXPECT_EQ(told_total(), 64 * kMib);
  use_device(1);
  (void)allocate(kMib);
  EXPECT_EQ(told_total(), 8 * kMib);
  EXPECT_EQ(statistics().budget, mib(8));
  EXPECT_TRUE(set_budget(-1, mib(16)));
  EXPECT_EQ(told_total(), 16 * kMib);
  use_device(0);
  EXPECT_EQ(told_total(), 16 * kMib);
  EXPECT_FALSE(set_budget(7, mib(8)));
}

TEST_F(SetBudgetUnder, BeforeCudaIsUsedIsRefused) {
  EXPECT_FALSE(set_budget(0, mib(64)));
  EXPECT_FALSE(set_fraction(0, 0.5));
}

TEST_F(SetBudget, IsOfAllContextsOfTheDevice) {
  (void)allocate(8 * kMib);
  const CUcontext primary = current();
  (void)make_context();
  free(allocate(24 * kMib));
  EXPECT_EQ(set(mib(16)).used, mib(8));
  EXPECT_EQ(statistics().budget, mib(16));
  use(primary);
  EXPECT_EQ(statistics().budget, mib(16));
}

TEST_F(SetBudget, DuringACaptureMemoryGoesBackAtItsEnd) {
  free(allocate(32 * kMib));
  const CUstream stream = make_stream();
  begin_capture(stream);
  EXPECT_EQ(set(mib(8)).used, mib(32));
  EXPECT_EQ(weir_standin_used(0), 32 * kMib);
  EXPECT_EQ(weir_standin_calls("cuMemFree"), 0U);
  end_capture(stream);
  EXPECT_EQ(weir_standin_used(0), 0U);
}

TEST_F(SetBudgetUnder, IsSaidInTheLogAndShownOutside) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "64MiB"}, {"WEIR_LOG", "info"}}));
  const weir::testing::LogCapture log;
  (void)allocate(8 * kMib);
  EXPECT_TRUE(set_budget(0, mib(16)));
  EXPECT_EQ(
      log.containing("the budget of GPU 0 is 16 MiB now and was 64 MiB (weir_set_budget)").size(),
      1U);
  LiveFigures figures;
  for_each_source([&figures](const TimelineSource& source) { source.add_figures(figures); });
  ASSERT_EQ(figures.device_count, 1U);
  const DeviceFigures& device = *figures.of(1);
  EXPECT_EQ(device.total, gib(1));
  EXPECT_EQ(device.budget, mib(16));
  EXPECT_EQ(device.used, mib(8));
  EXPECT_EQ(device.allocated, mib(8));
  EXPECT_EQ(figures.budget, mib(16));
}

// This ends: each thread does a fixed number of steps.
TEST_F(SetBudgetUnder, ManyThreadsMayChangeItWhileOthersAllocateAndContextsComeAndGo) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "64MiB"}, {"WEIR_MAX_WAIT", "10ms"}}));
  (void)allocate(kMib);
  const CUcontext primary = current();
  Device& device = arena().device();
  constexpr int kRounds = 200;
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < kRounds; ++round) {
        const Bytes budget = mib(static_cast<std::uint64_t>(4 + (7 * round + 13 * i) % 60));
        EXPECT_EQ(device.set_budget(budget, "a test").code, timeline::BudgetCode::kTaken);
      }
    });
  }
  threads.emplace_back([&] {
    for (int round = 0; round < kRounds; ++round) device.keep_budget();
  });
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      EXPECT_EQ(cuCtxSetCurrent(primary), CUDA_SUCCESS);
      for (int round = 0; round < kRounds; ++round) {
        CUdeviceptr pointer = 0;
        const auto bytes = static_cast<std::size_t>(1 + round % 5) * kMib;
        if (cuMemAlloc(&pointer, bytes) == CUDA_SUCCESS) free(pointer);
      }
    });
  }
  threads.emplace_back([&] {
    for (int round = 0; round < kRounds / 10; ++round) {
      const CUcontext own = make_context();
      CUdeviceptr pointer = 0;
      if (cuMemAlloc(&pointer, 2 * kMib) == CUDA_SUCCESS) free(pointer);
      EXPECT_EQ(cuCtxDestroy(own), CUDA_SUCCESS);
    }
  });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(set(mib(48)).after, mib(48));
  EXPECT_EQ(statistics().budget, mib(48));
  settle();
  EXPECT_EQ(set(mib(4)).after, mib(4));
  EXPECT_LE(used(), mib(4));
  EXPECT_EQ(weir_standin_used(0), used().count);
}

}  // namespace
}  // namespace weir::preload::testing
