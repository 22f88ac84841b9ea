// Pools: memory in stream order, and how much of it a pool keeps.

#include "tests/standin/fixture.hpp"

namespace weir::standin::testing {
namespace {

class StandInPool : public StandIn {
 protected:
  cudaMemPool_t default_pool() {
    cudaMemPool_t pool = nullptr;
    ok(cudaDeviceGetDefaultMemPool(&pool, 0));
    return pool;
  }
  static std::uint64_t ask(cudaMemPool_t pool, cudaMemPoolAttr attribute) {
    std::uint64_t value = 0;
    ok(cudaMemPoolGetAttribute(pool, attribute, &value));
    return value;
  }
  unsigned char* take(std::size_t bytes) {
    void* memory = nullptr;
    ok(cudaMallocAsync(&memory, bytes, stream_));
    return static_cast<unsigned char*>(memory);
  }
  static cudaMemPool_t make_pool() {
    cudaMemPoolProps properties{};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location.type = cudaMemLocationTypeDevice;
    cudaMemPool_t pool = nullptr;
    ok(cudaMemPoolCreate(&pool, &properties));
    return pool;
  }
};

TEST_F(StandInPool, FreesInStreamOrder) {
  unsigned char* memory = take(kMiB);
  ok(cudaMemsetAsync(memory, 1, kMiB, stream_));
  while_held([&] {
    ok(cudaFreeAsync(memory, stream_));
    EXPECT_EQ(weir_standin_live().device_blocks, 1U);
    EXPECT_EQ(cudaFreeAsync(memory, stream_), cudaErrorInvalidValue);
  });
  sync();
  EXPECT_EQ(weir_standin_live().device_blocks, 0U);
  EXPECT_EQ(weir_standin_used(0), 0U);
}

TEST_F(StandInPool, KeepsWhatItsThresholdSays) {
  cudaMemPool_t pool = default_pool();
  std::uint64_t threshold = UINT64_MAX;
  ok(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
  ok(cudaFreeAsync(take(4 * kMiB), stream_));
  sync();
  EXPECT_EQ(ask(pool, cudaMemPoolAttrUsedMemCurrent), 0U);
  EXPECT_EQ(ask(pool, cudaMemPoolAttrUsedMemHigh), 4 * kMiB);
  EXPECT_EQ(ask(pool, cudaMemPoolAttrReservedMemCurrent), 4 * kMiB);
  EXPECT_EQ(weir_standin_used(0), 4 * kMiB);
  ok(cudaFreeAsync(take(2 * kMiB), stream_));
  EXPECT_EQ(weir_standin_used(0), 4 * kMiB);
  sync();
  ok(cudaMemPoolTrimTo(pool, 2 * kMiB));
  EXPECT_EQ(weir_standin_used(0), 2 * kMiB);
  ok(cudaMemPoolTrimTo(pool, 0));
  EXPECT_EQ(weir_standin_used(0), 0U);
}

TEST_F(StandInPool, RunsOutAtTheDevicesSize) {
  weir_standin_set_memory(8 * kMiB);
  unsigned char* memory = take(6 * kMiB);
  void* more = nullptr;
  EXPECT_EQ(cudaMallocAsync(&more, 3 * kMiB, stream_), cudaErrorMemoryAllocation);
  ok(cudaFree(memory));
  ok(cudaMallocAsync(&more, 3 * kMiB, stream_));
}

TEST_F(StandInPool, ASynchronousFreeOfPooledMemoryDoesNotWait) {
  unsigned char* memory = take(512);
  unsigned char* other = make_memory();
  while_held([&] {
    ok(cudaMemsetAsync(other, 1, 512, stream_));
    ok(cudaFree(memory));
    EXPECT_EQ(cudaStreamQuery(stream_), cudaErrorNotReady);
  });
}

TEST_F(StandInPool, MemoryOfCudaMallocMayBeFreedInStreamOrder) {
  unsigned char* memory = make_memory(kMiB);
  ok(cudaMemsetAsync(memory, 1, kMiB, stream_));
  ok(cudaFreeAsync(memory, stream_));
  sync();
  EXPECT_EQ(weir_standin_used(0), 0U);
}

TEST_F(StandInPool, OfTheUserIsCountedApart) {
  cudaMemPool_t pool = make_pool();
  EXPECT_EQ(weir_standin_live().pools, 1U);
  void* memory = nullptr;
  ok(cudaMallocFromPoolAsync(&memory, kMiB, pool, stream_));
  EXPECT_EQ(ask(pool, cudaMemPoolAttrUsedMemCurrent), kMiB);
  EXPECT_EQ(ask(default_pool(), cudaMemPoolAttrUsedMemCurrent), 0U);
  ok(cudaMemPoolDestroy(pool));
  EXPECT_EQ(weir_standin_used(0), 2 * kMiB);
  ok(cudaFreeAsync(memory, stream_));
  sync();
  EXPECT_EQ(weir_standin_used(0), 0U);
  EXPECT_EQ(weir_standin_live().pools, 0U);
}

TEST_F(StandInPool, IsTheOneThatWasSetForTheDevice) {
  cudaMemPool_t own = make_pool();
  ok(cudaDeviceSetMemPool(0, own));
  cudaMemPool_t current = nullptr;
  ok(cudaDeviceGetMemPool(&current, 0));
  EXPECT_EQ(current, own);
  (void)take(kMiB);
  EXPECT_EQ(ask(own, cudaMemPoolAttrUsedMemCurrent), kMiB);
}

}  // namespace
}  // namespace weir::standin::testing
