// Pools: memory in stream order, and how much of it a pool keeps.

#include "tests/standin/fixture.hpp"

namespace weir::standin::testing {
namespace {

class StandInPool : public StandIn {
 protected:
  cudaMemPool_t default_pool() {
    cudaMemPool_t pool = nullptr;
    EXPECT_EQ(cudaDeviceGetDefaultMemPool(&pool, 0), cudaSuccess);
    return pool;
  }
  static std::uint64_t ask(cudaMemPool_t pool, cudaMemPoolAttr attribute) {
    std::uint64_t value = 0;
    EXPECT_EQ(cudaMemPoolGetAttribute(pool, attribute, &value), cudaSuccess);
    return value;
  }
  unsigned char* take(std::size_t bytes) {
    void* memory = nullptr;
    EXPECT_EQ(cudaMallocAsync(&memory, bytes, stream_), cudaSuccess);
    return static_cast<unsigned char*>(memory);
  }

  cudaStream_t stream_ = make_stream();
};

TEST_F(StandInPool, FreesInStreamOrder) {
  unsigned char* memory = take(kMiB);
  ASSERT_EQ(cudaMemsetAsync(memory, 1, kMiB, stream_), cudaSuccess);
  weir_standin_hold(stream_);
  ASSERT_EQ(cudaFreeAsync(memory, stream_), cudaSuccess);
  EXPECT_EQ(weir_standin_live().device_blocks, 1U);
  EXPECT_EQ(cudaFreeAsync(memory, stream_), cudaErrorInvalidValue);
  weir_standin_release(stream_);
  ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  EXPECT_EQ(weir_standin_live().device_blocks, 0U);
  EXPECT_EQ(weir_standin_used(0), 0U);
}

TEST_F(StandInPool, KeepsWhatItsThresholdSays) {
  cudaMemPool_t pool = default_pool();
  std::uint64_t threshold = UINT64_MAX;
  ASSERT_EQ(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold),
            cudaSuccess);
  ASSERT_EQ(cudaFreeAsync(take(4 * kMiB), stream_), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  EXPECT_EQ(ask(pool, cudaMemPoolAttrUsedMemCurrent), 0U);
  EXPECT_EQ(ask(pool, cudaMemPoolAttrUsedMemHigh), 4 * kMiB);
  EXPECT_EQ(ask(pool, cudaMemPoolAttrReservedMemCurrent), 4 * kMiB);
  EXPECT_EQ(weir_standin_used(0), 4 * kMiB);
  ASSERT_EQ(cudaFreeAsync(take(2 * kMiB), stream_), cudaSuccess);
  EXPECT_EQ(weir_standin_used(0), 4 * kMiB);
  ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  ASSERT_EQ(cudaMemPoolTrimTo(pool, 2 * kMiB), cudaSuccess);
  EXPECT_EQ(weir_standin_used(0), 2 * kMiB);
  ASSERT_EQ(cudaMemPoolTrimTo(pool, 0), cudaSuccess);
  EXPECT_EQ(weir_standin_used(0), 0U);
}

TEST_F(StandInPool, RunsOutAtTheDevicesSize) {
  weir_standin_set_memory(8 * kMiB);
  unsigned char* memory = take(6 * kMiB);
  void* more = nullptr;
  EXPECT_EQ(cudaMallocAsync(&more, 3 * kMiB, stream_), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
  EXPECT_EQ(cudaMallocAsync(&more, 3 * kMiB, stream_), cudaSuccess);
}

TEST_F(StandInPool, ASynchronousFreeOfPooledMemoryDoesNotWait) {
  unsigned char* memory = take(512);
  unsigned char* other = make_memory();
  weir_standin_hold(stream_);
  ASSERT_EQ(cudaMemsetAsync(other, 1, 512, stream_), cudaSuccess);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(stream_), cudaErrorNotReady);
  weir_standin_release(stream_);
}

TEST_F(StandInPool, MemoryOfCudaMallocMayBeFreedInStreamOrder) {
  unsigned char* memory = make_memory(kMiB);
  ASSERT_EQ(cudaMemsetAsync(memory, 1, kMiB, stream_), cudaSuccess);
  ASSERT_EQ(cudaFreeAsync(memory, stream_), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  EXPECT_EQ(weir_standin_used(0), 0U);
}

TEST_F(StandInPool, OfTheUserIsCountedApart) {
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location.type = cudaMemLocationTypeDevice;
  properties.location.id = 0;
  cudaMemPool_t pool = nullptr;
  ASSERT_EQ(cudaMemPoolCreate(&pool, &properties), cudaSuccess);
  EXPECT_EQ(weir_standin_live().pools, 1U);
  void* memory = nullptr;
  ASSERT_EQ(cudaMallocFromPoolAsync(&memory, kMiB, pool, stream_), cudaSuccess);
  EXPECT_EQ(ask(pool, cudaMemPoolAttrUsedMemCurrent), kMiB);
  EXPECT_EQ(ask(default_pool(), cudaMemPoolAttrUsedMemCurrent), 0U);
  ASSERT_EQ(cudaMemPoolDestroy(pool), cudaSuccess);
  EXPECT_EQ(weir_standin_used(0), 2 * kMiB);
  ASSERT_EQ(cudaFreeAsync(memory, stream_), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  EXPECT_EQ(weir_standin_used(0), 0U);
  EXPECT_EQ(weir_standin_live().pools, 0U);
}

TEST_F(StandInPool, IsTheOneThatWasSetForTheDevice) {
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location.type = cudaMemLocationTypeDevice;
  cudaMemPool_t own = nullptr;
  ASSERT_EQ(cudaMemPoolCreate(&own, &properties), cudaSuccess);
  ASSERT_EQ(cudaDeviceSetMemPool(0, own), cudaSuccess);
  cudaMemPool_t current = nullptr;
  ASSERT_EQ(cudaDeviceGetMemPool(&current, 0), cudaSuccess);
  EXPECT_EQ(current, own);
  (void)take(kMiB);
  EXPECT_EQ(ask(own, cudaMemPoolAttrUsedMemCurrent), kMiB);
}

}  // namespace
}  // namespace weir::standin::testing
