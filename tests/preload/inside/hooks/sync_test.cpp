// cuMemAlloc and cuMemFree, if nobody uses the memory late.

#include <atomic>

#include "tests/preload/inside/inside.hpp"

namespace weir::preload::testing {
namespace {

class Sync : public Inside {
 protected:
  void SetUp() override { ASSERT_NO_FATAL_FAILURE(start()); }
};
class SyncFree : public Sync {
  void SetUp() override {}
};

TEST_F(Sync, AlignsTo512BytesAndGivesAllThatWasAskedFor) {
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{3}, std::size_t{511},
                                  std::size_t{513}, std::size_t{4097}, kMib + 1}) {
    for (int i = 0; i < 3; ++i) {
      const CUdeviceptr pointer = allocate(bytes);
      EXPECT_EQ(pointer % 512, 0U) << bytes;
      EXPECT_EQ(cuMemsetD8(pointer, 1, bytes), CUDA_SUCCESS) << bytes;
    }
  }
}

TEST_F(Sync, RowsOfAPitchedBlockBeginAtMultiplesOf512) {
  CUdeviceptr pointer = 0;
  std::size_t pitch = 0;
  ASSERT_EQ(cuMemAllocPitch(&pointer, &pitch, 700, 10, 4), CUDA_SUCCESS);
  EXPECT_EQ(pitch, 1024U);
  EXPECT_EQ(cuMemsetD8(pointer, 1, 10 * pitch), CUDA_SUCCESS);
  EXPECT_EQ(weir_standin_calls("cuMemAllocPitch"), 0U);
  free(pointer);
}

TEST_F(Sync, RowsThatAreMoreThanAnyMemoryAreRefused) {
  expect_refused("cuMemAllocPitch", CUDA_ERROR_OUT_OF_MEMORY);
  // Rows of 512 bytes, so many that their sum overflows to a small number.
  constexpr std::size_t kAround = SIZE_MAX / 512 + 1;
  for (const std::size_t height : {kAround / 2 + 1, kAround, kAround + 1, SIZE_MAX}) {
    for (const std::size_t width : {std::size_t{1}, std::size_t{512}, SIZE_MAX / 2, SIZE_MAX}) {
      CUdeviceptr pointer = 0;
      std::size_t pitch = 0;
      EXPECT_EQ(cuMemAllocPitch(&pointer, &pitch, width, height, 4), CUDA_ERROR_OUT_OF_MEMORY)
          << width << " x " << height;
    }
  }
  EXPECT_EQ(statistics().reserved.current, Bytes{});
}

TEST_F(Sync, ServesACachedBlockWithoutACallOfTheDriver) {
  const CUdeviceptr first = allocate(5000);
  const CUdeviceptr second = allocate(5000);
  free(first);
  free(second);
  settle();
  weir_standin_clear_counters();
  const CUdeviceptr again = allocate(5000);
  const CUdeviceptr other = allocate(5000);
  EXPECT_EQ(calls(), 0U);
  EXPECT_NE(again, other);
  EXPECT_TRUE(again == first || again == second);
  EXPECT_TRUE(other == first || other == second);
}

TEST_F(Sync, AFreeCallsNothing) {
  const CUstream stream = make_stream();
  std::vector<CUdeviceptr> blocks;
  for (std::uint32_t i = 0; i + 1 < kPointsOfAFence; ++i) {
    blocks.push_back(allocate(4096));
  }
  keep_busy(stream, blocks.front());
  weir_standin_clear_counters();
  for (const CUdeviceptr block : blocks) free(block);
  EXPECT_EQ(calls(), 0U);
}

TEST_F(Sync, FreesShareFences) {
  const CUstream busy = make_stream();
  const CUstream idle = make_stream();
  constexpr std::uint64_t kFences = 10;
  std::vector<CUdeviceptr> blocks;
  for (std::uint64_t i = 0; i < kFences * kPointsOfAFence; ++i) {
    blocks.push_back(allocate(4096));
  }
  keep_busy(busy, blocks.front());
  ASSERT_EQ(cuStreamSynchronize(idle), CUDA_SUCCESS);
  weir_standin_clear_counters();
  for (const CUdeviceptr block : blocks) free(block);
  // One event for each fence, on the busy stream alone; the default stream is queried, too.
  EXPECT_EQ(weir_standin_calls("cuEventRecord"), kFences);
  EXPECT_EQ(weir_standin_calls("cuStreamQuery"), 3 * kFences);
  EXPECT_EQ(weir_standin_calls("cuMemFree"), 0U);
  EXPECT_EQ(weir_standin_calls("cuCtxSynchronize"), 0U);
  EXPECT_EQ(weir_standin_calls("cuStreamSynchronize"), 0U);
}

TEST_F(Sync, FreesWhatItDoesNotKnowAsTheDriverDoes) {
  const CUdeviceptr block = allocate(kMib);
  EXPECT_EQ(cuMemFree(0), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree(block + 512), CUDA_ERROR_INVALID_VALUE);
  free(block);
  EXPECT_EQ(statistics().allocated.current, Bytes{});
}

TEST_F(SyncFree, AFreeWaitsForTheDeviceWhereItIsToldTo) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_SYNC_FREE", "1"}}));
  const CUstream stream = make_stream();
  const CUdeviceptr block = allocate(4096);
  keep_busy(stream, block);
  const CUcontext context = current();
  weir_standin_clear_counters();
  std::atomic<bool> freed{false};
  std::thread other([&] {
    EXPECT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
    free(block);
    freed = true;
  });
  wait_until([] { return weir_standin_calls("cuCtxSynchronize") == 1; });
  EXPECT_FALSE(freed);
  weir_standin_release(stream);
  other.join();
  EXPECT_TRUE(freed);
}

TEST_F(SyncFree, AFreeThatCannotWaitFreesNothing) {
  ASSERT_NO_FATAL_FAILURE(start({{"WEIR_SYNC_FREE", "1"}}));
  const CUdeviceptr block = allocate(4096);
  weir_standin_fail("cuCtxSynchronize", 1, CUDA_ERROR_LAUNCH_FAILED, kWeirStandinOnce);
  EXPECT_EQ(cuMemFree(block), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_NE(statistics().allocated.current, Bytes{});
  EXPECT_EQ(cuMemFree(block), CUDA_SUCCESS);
  EXPECT_EQ(statistics().allocated.current, Bytes{});
}

}  // namespace
}  // namespace weir::preload::testing
