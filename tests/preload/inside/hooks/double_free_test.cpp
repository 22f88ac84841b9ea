// Frees of pointers that nobody owns: refused with the driver's code, and never passed to the
// driver, which would release a whole segment.

#include <atomic>

#include "tests/preload/inside/inside.hpp"

namespace weir::preload::testing {
namespace {

enum class How { kFree, kFreeAsync };

class DoubleFree : public Inside, public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(start(
        {{"WEIR_POOL", GetParam()}, {"WEIR_STANDIN_DEVICES", "2"}, {"WEIR_BUDGET", "512MiB"}}));
  }
  static CUresult free_by(How how, CUdeviceptr pointer) {
    return how == How::kFree ? cuMemFree(pointer) : cuMemFreeAsync(pointer, nullptr);
  }
  /// Frees that reached the driver.
  static std::uint64_t driver_frees() {
    return weir_standin_calls("cuMemFree") + weir_standin_calls("cuMemFreeAsync");
  }
  /// Checks that every way of freeing `pointer`, which nobody owns, is refused, here and by
  /// `streams`.
  static void expect_refused_here(CUdeviceptr pointer, const std::vector<CUstream>& streams = {}) {
    const Statistics before = statistics();
    const std::uint64_t frees = driver_frees();
    EXPECT_EQ(cuMemFree(pointer), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemFreeAsync(pointer, nullptr), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemFreeAsync_ptsz(pointer, nullptr), CUDA_ERROR_INVALID_VALUE);
    for (const CUstream stream : streams) {
      EXPECT_EQ(cuMemFreeAsync(pointer, stream), CUDA_ERROR_INVALID_VALUE);
    }
    EXPECT_EQ(driver_frees(), frees);
    EXPECT_EQ(statistics().allocated.current, before.allocated.current);
    EXPECT_EQ(statistics().reserved.current, before.reserved.current);
  }
  static void expect_usable(CUdeviceptr pointer, std::size_t bytes) {
    EXPECT_EQ(cuMemsetD8(pointer, 7, bytes), CUDA_SUCCESS);
    EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    EXPECT_EQ(*reinterpret_cast<const unsigned char*>(pointer), 7);
  }
};

/// Of pools that keep freed memory.
class DoubleFreeOfCached : public DoubleFree {};

TEST_P(DoubleFree, IsRefusedAndItsNeighboursLive) {
  const CUstream stream = make_stream();
  for (const How how : {How::kFree, How::kFreeAsync}) {
    const CUdeviceptr first = allocate(kBytes);
    const CUdeviceptr second = allocate(kBytes);
    const CUdeviceptr third = allocate(kBytes, stream);
    weir_standin_hold(weir_standin_all_streams());  // so that no pool releases it
    EXPECT_EQ(cuMemsetD8Async(first, 1, kBytes / 2, stream), CUDA_SUCCESS);
    EXPECT_EQ(cuMemsetD8Async(first + kBytes / 2, 1, kBytes / 2, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(free_by(how, first), CUDA_SUCCESS);
    expect_refused_here(first, {stream});
    release_all();
    EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    expect_usable(second, kBytes);
    expect_usable(third, kBytes);
    free(second);
    free(third, stream);
  }
}

TEST_P(DoubleFreeOfCached, LeavesTheNextOwnersMemoryAlone) {
  const CUdeviceptr block = allocate(kBytes);
  const CUdeviceptr neighbour = allocate(kBytes);
  free(block);
  settle();
  expect_refused_here(block);  // cached now
  const CUdeviceptr again = allocate(kBytes);
  EXPECT_EQ(again, block);
  expect_usable(again, kBytes);
  expect_usable(neighbour, kBytes);
}

TEST_P(DoubleFree, OfAPointerIntoTheMiddleChangesNothing) {
  const CUdeviceptr block = allocate(4 * kMib);
  for (const std::size_t at : {std::size_t{1}, std::size_t{512}, 2 * kMib, 4 * kMib - 1}) {
    expect_refused_here(block + at, {make_stream()});
  }
  expect_usable(block, 4 * kMib);
  free(block);
}

TEST_P(DoubleFree, InAnotherContextIsRefusedToo) {
  const CUstream stream = make_stream();
  const CUdeviceptr freed = allocate(kBytes);
  const CUdeviceptr live = allocate(kBytes, stream);
  keep_busy(stream, freed);
  free(freed);
  ASSERT_NO_FATAL_FAILURE(use_device(1));
  const CUstream there = make_stream();
  expect_refused_here(freed, {there});
  expect_refused_here(live + 512, {there});
  free(live, there);  // whose it is does not matter
  expect_refused_here(live, {there});
}

TEST_P(DoubleFree, InACaptureIsRefusedAndBreaksNothing) {
  const CUstream stream = make_stream();
  const CUstream busy = make_stream();
  const CUdeviceptr live = allocate(kBytes);
  const CUdeviceptr freed = allocate(kBytes);
  keep_busy(busy, freed);
  free(freed);
  begin_capture(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
  const std::uint64_t frees = driver_frees();
  for (const CUdeviceptr pointer : {live, live + 512, freed}) {
    EXPECT_EQ(cuMemFreeAsync(pointer, stream), CUDA_ERROR_INVALID_VALUE);
  }
  EXPECT_EQ(driver_frees(), frees);
  end_capture(stream);
  release_all();
  expect_usable(live, kBytes);
  free(live);
}

TEST_P(DoubleFree, OfManyThreadsSucceedsOnce) {
  weir::testing::expect_any_refused();  // unpooled: of memory that the driver has back
  constexpr int kThreads = 4;
  constexpr int kRounds = 200;
  std::vector<CUdeviceptr> blocks;
  std::vector<CUdeviceptr> neighbours;
  for (int i = 0; i < kRounds; ++i) {
    blocks.push_back(allocate(kBytes));
    neighbours.push_back(allocate(kBytes));
    ASSERT_EQ(cuMemsetD8(neighbours.back(), 7, kBytes), CUDA_SUCCESS);
  }
  std::vector<std::atomic<int>> freed(kRounds);
  std::vector<std::thread> threads;
  for (int number = 0; number < kThreads; ++number) {
    threads.emplace_back([&, number] {
      ASSERT_NO_FATAL_FAILURE(use_device(0));
      for (std::size_t i = 0; i < kRounds; ++i) {
        const CUresult code = free_by(number % 2 == 0 ? How::kFree : How::kFreeAsync, blocks[i]);
        EXPECT_TRUE(code == CUDA_SUCCESS || code == CUDA_ERROR_INVALID_VALUE) << code;
        if (code == CUDA_SUCCESS) ++freed[i];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  for (const auto& times : freed) EXPECT_EQ(times, 1);
  for (const CUdeviceptr neighbour : neighbours) {
    EXPECT_EQ(*reinterpret_cast<const unsigned char*>(neighbour), 7);
    free(neighbour);
  }
  settle();
  EXPECT_EQ(statistics().allocated.current, Bytes{});
}

std::string name_of(const ::testing::TestParamInfo<const char*>& each) { return each.param; }
INSTANTIATE_TEST_SUITE_P(Pools, DoubleFree,
                         ::testing::Values("auto", "naive", "round", "unpooled", "best_fit",
                                           "paged"),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Pools, DoubleFreeOfCached,
                         ::testing::Values("auto", "naive", "round", "best_fit", "paged"), name_of);

class FreeOfNoBlock : public Inside {};

TEST_F(FreeOfNoBlock, IsTheDriversToRefuseOnceTheDriverHasTheMemoryBack) {
  expect_refused("cuMemFree", CUDA_ERROR_INVALID_VALUE);
  ASSERT_NO_FATAL_FAILURE(start());
  const CUdeviceptr block = allocate(32 * kMib);
  free(block);
  settle();
  EXPECT_EQ(trim(0), mib(32));
  weir_standin_clear_counters();
  EXPECT_EQ(cuMemFree(block), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(weir_standin_calls("cuMemFree"), 1U);
}

TEST_F(FreeOfNoBlock, IsRefusedWhereTheDriverWouldNotTakeTheMemoryBack) {
  const CUresult code = CUDA_ERROR_LAUNCH_FAILED;
  ASSERT_NO_FATAL_FAILURE(start());
  const CUdeviceptr block = allocate(kMib);
  free(block);
  settle();
  weir_standin_fail("cuMemFree", 1, code, kWeirStandinOnce);
  (void)trim(0);
  weir_standin_clear_counters();
  EXPECT_EQ(cuMemFree(block), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(weir_standin_calls("cuMemFree"), 0U);
}

}  // namespace
}  // namespace weir::preload::testing
