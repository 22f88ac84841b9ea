// The hostile program of hostile.hpp: 10^6 operations in half a minute; fewer with few blocking
// streams, under a sanitizer and on the older driver. The same on two devices, with captures that
// span them, over each pool.

#include "tests/preload/inside/hostile.hpp"

namespace weir::preload::testing {
namespace {

/// With so few blocking streams the legacy stream often works while no blocking stream does. Only
/// then does a fence need an event on the legacy stream itself
/// (tools/preload/context/fence_due.hpp).
Mix mostly_non_blocking(PerThread per_thread) {
  return {
      .per_thread = per_thread, .threads = 4, .streams = 6, .per_blocking = 4, .per_default = 4};
}

TEST_F(Hostile, NobodyHasABlockThatIsInUseAndNothingIsLeft) {
  expect_no_block_in_two_hands(operations(), {});
}

TEST_F(Hostile, NobodyHasABlockThatIsInUseWhereNobodyUsesAPerThreadStream) {
  expect_no_block_in_two_hands(operations() / 5, mostly_non_blocking(PerThread::kNobody));
}

TEST_F(Hostile, NobodyHasABlockThatIsInUseWhereOneThreadUsesAPerThreadStream) {
  expect_no_block_in_two_hands(operations() / 5, mostly_non_blocking(PerThread::kOneThread));
}

class HostileShort : public Hostile, public ::testing::WithParamInterface<const char*> {};

/// Less memory than the threads want, so that releases, handovers, waits and failures occur. Each
/// of the two pools of `auto` hands over less, and waits for the other's part of the budget.
TEST_P(HostileShort, NobodyHasABlockThatIsInUse) {
  const std::uint64_t seed = weir::testing::random_seed() + 1;
  SCOPED_TRACE(weir::testing::seed_message(seed - 1));
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_BUDGET", "1MiB"}, {"WEIR_POOL", GetParam()}}));
  ASSERT_NO_FATAL_FAILURE(run_all(seed, operations() / 10, {.memory_is_short = true}));
  EXPECT_EQ(corrupted, 0U);
  EXPECT_EQ(weir_standin_late_uses(), 0U);
  if (std::string_view(GetParam()) == "naive") {
    EXPECT_GT(statistics().handovers, 0U);
  }
  EXPECT_GT(arena().statistics().waits, 0U);
  EXPECT_LE(weir_standin_peak(0), kMib);
  expect_nothing_left();
  expect_nothing_left_at_the_driver();
}

INSTANTIATE_TEST_SUITE_P(Pools, HostileShort, ::testing::Values("naive", "auto"));

class HostileCaptures : public Hostile, public ::testing::WithParamInterface<const char*> {};

/// A twentieth of the operations for each pool. One in 20 is a capture, so that a short run also
/// launches graphs.
TEST_P(HostileCaptures, OverTwoDevicesLeaveEveryBlockInOneHandAndNothingBehind) {
  weir::testing::expect_refused("cuStreamEndCapture", CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  const std::uint64_t seed = weir::testing::random_seed();
  SCOPED_TRACE(weir::testing::seed_message(seed));
  ASSERT_NO_FATAL_FAILURE(
      start({{"WEIR_BUDGET", "512MiB"}, {"WEIR_STANDIN_DEVICES", "2"}, {"WEIR_POOL", GetParam()}}));
  CUcontext first = nullptr;
  CUcontext second = nullptr;
  ASSERT_EQ(cuCtxGetCurrent(&first), CUDA_SUCCESS);
  ASSERT_NO_FATAL_FAILURE(use_device(1));
  ASSERT_EQ(cuCtxGetCurrent(&second), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxEnablePeerAccess(first, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSetCurrent(first), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxEnablePeerAccess(second, 0), CUDA_SUCCESS);
  ASSERT_NO_FATAL_FAILURE(run_all(seed, operations() / 20, {.devices = 2, .per_capture = 20}));
  EXPECT_EQ(corrupted, 0U);
  EXPECT_EQ(weir_standin_late_uses(), 0U);
  EXPECT_FALSE(CapturesUnderWay::any());
  for (const CUcontext context : {first, second}) {
    ASSERT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
    EXPECT_EQ(statistics().failures, 0U);
    EXPECT_FALSE(arena().fences().capturing());
    expect_nothing_left();
  }
  expect_nothing_left_at_the_driver();
  EXPECT_EQ(weir_standin_live().graphs, 0U);
}

INSTANTIATE_TEST_SUITE_P(EveryPool, HostileCaptures,
                         ::testing::Values("auto", "unpooled", "naive", "round", "best_fit",
                                           "paged"),
                         [](const auto& pool) { return std::string(pool.param); });

}  // namespace
}  // namespace weir::preload::testing
