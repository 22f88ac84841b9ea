// The default pool: a program that queries it gets the figures of ours.

#include "tests/preload/inside/inside.hpp"

namespace weir::preload::testing {
namespace {

class DefaultPool : public Inside {
 protected:
  void SetUp() override { ASSERT_NO_FATAL_FAILURE(start()); }
  static std::uint64_t get(CUmemoryPool pool, CUmemPool_attribute attribute) {
    cuuint64_t value = 0;
    EXPECT_EQ(cuMemPoolGetAttribute(pool, attribute, &value), CUDA_SUCCESS);
    return value;
  }
  static void reset(CUmemoryPool pool, CUmemPool_attribute attribute) {
    cuuint64_t zero = 0;
    EXPECT_EQ(cuMemPoolSetAttribute(pool, attribute, &zero), CUDA_SUCCESS);
  }
};

TEST_F(DefaultPool, UsedAndReservedAreOurs) {
  const CUmemoryPool pool = default_pool();
  const CUstream stream = make_stream();
  (void)allocate(20 * kMib);  // not in stream order
  EXPECT_EQ(get(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH), 0U);
  const CUdeviceptr one = allocate(4 * kMib, stream);
  const CUdeviceptr two = allocate(2 * kMib, stream);
  EXPECT_EQ(get(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 6 * kMib);
  EXPECT_EQ(get(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 6 * kMib);
  free(one, stream);
  EXPECT_EQ(get(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 2 * kMib);
  EXPECT_EQ(get(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 6 * kMib);
  EXPECT_EQ(get(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH), 6 * kMib);
  EXPECT_EQ(get(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH), 6 * kMib);
  free(two, stream);
}

TEST_F(DefaultPool, PeaksStartAgainAtWhatIsThereAndTheSummaryKeepsThem) {
  const CUmemoryPool pool = default_pool();
  const CUstream stream = make_stream();
  const CUdeviceptr one = allocate(4 * kMib, stream);
  const CUdeviceptr two = allocate(2 * kMib, stream);
  free(one, stream);
  settle();
  reset(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH);
  EXPECT_EQ(get(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH), 2 * kMib);
  EXPECT_EQ(cuMemPoolTrimTo(pool, 0), CUDA_SUCCESS);
  reset(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH);
  EXPECT_EQ(get(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH), 2 * kMib);
  EXPECT_EQ(arena().statistics().allocated.peak, mib(6));
  free(two, stream);
}

TEST_F(DefaultPool, TrimGivesCachedMemoryBackToTheDriver) {
  const CUmemoryPool pool = default_pool();
  const CUstream stream = make_stream();
  std::vector<CUdeviceptr> blocks;
  for (int i = 0; i < 4; ++i) blocks.push_back(allocate(2 * kMib, stream));
  const CUdeviceptr kept = blocks.back();
  blocks.pop_back();
  for (const CUdeviceptr block : blocks) free(block, stream);
  settle();
  EXPECT_EQ(weir_standin_used(0), 8 * kMib);
  EXPECT_EQ(cuMemPoolTrimTo(pool, 6 * kMib), CUDA_SUCCESS);
  EXPECT_EQ(weir_standin_used(0), 6 * kMib);
  EXPECT_EQ(cuMemPoolTrimTo(pool, 0), CUDA_SUCCESS);
  EXPECT_EQ(weir_standin_used(0), 2 * kMib);
  EXPECT_EQ(cuMemsetD8(kept, 1, 2 * kMib), CUDA_SUCCESS);
  free(kept, stream);
}

TEST_F(DefaultPool, WhoSynchronizesAndTrimsGetsAllOfItGivenBack) {
  for (const CUstream stream : {CUstream{CU_STREAM_LEGACY}, make_stream(), make_stream()}) {
    const CUdeviceptr block = allocate(2 * kMib, stream);
    EXPECT_EQ(cuMemsetD8Async(block, 1, 2 * kMib, stream), CUDA_SUCCESS);
    free(block, stream);
    free(allocate(2 * kMib));
  }
  ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_EQ(cuMemPoolTrimTo(default_pool(), 0), CUDA_SUCCESS);
  EXPECT_EQ(weir_standin_used(0), 0U);
}

TEST_F(DefaultPool, TrimLeavesWhatTheDeviceStillUses) {
  const CUstream stream = make_stream();
  const CUdeviceptr block = allocate(2 * kMib, stream);
  keep_busy(stream, block);
  free(block, stream);
  EXPECT_EQ(cuMemPoolTrimTo(default_pool(), 0), CUDA_SUCCESS);
  EXPECT_EQ(weir_standin_used(0), 2 * kMib);
  settle();
  EXPECT_EQ(cuMemPoolTrimTo(default_pool(), 0), CUDA_SUCCESS);
  EXPECT_EQ(weir_standin_used(0), 0U);
}

TEST_F(DefaultPool, OtherAttributesAreTheDrivers) {
  cuuint64_t most = UINT64_MAX;
  ASSERT_EQ(cuMemPoolSetAttribute(default_pool(), CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &most),
            CUDA_SUCCESS);
  EXPECT_EQ(get(default_pool(), CU_MEMPOOL_ATTR_RELEASE_THRESHOLD), UINT64_MAX);
  int reuse = 0;
  ASSERT_EQ(
      cuMemPoolSetAttribute(default_pool(), CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &reuse),
      CUDA_SUCCESS);
  reuse = 1;
  ASSERT_EQ(
      cuMemPoolGetAttribute(default_pool(), CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &reuse),
      CUDA_SUCCESS);
  EXPECT_EQ(reuse, 0);
}

TEST_F(DefaultPool, APoolOfTheProgramsIsTheDrivers) {
  const CUmemoryPool pool = make_pool();
  const CUstream stream = make_stream();
  const CUdeviceptr ours = allocate(4 * kMib, stream);
  CUdeviceptr theirs = 0;
  ASSERT_EQ(cuMemAllocFromPoolAsync(&theirs, kMib, pool, stream), CUDA_SUCCESS);
  EXPECT_EQ(weir_standin_calls("cuMemAllocFromPoolAsync"), 1U);
  EXPECT_EQ(get(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), kMib);
  EXPECT_EQ(get(default_pool(), CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 4 * kMib);
  free(theirs, stream);
  EXPECT_EQ(weir_standin_calls("cuMemFreeAsync"), 1U);
  free(ours, stream);
  EXPECT_EQ(weir_standin_calls("cuMemFreeAsync"), 1U);
}

TEST_F(DefaultPool, NamedExplicitlyItIsOurs) {
  const CUstream stream = make_stream();
  CUdeviceptr block = 0;
  ASSERT_EQ(cuMemAllocFromPoolAsync(&block, kMib, default_pool(), stream), CUDA_SUCCESS);
  EXPECT_EQ(weir_standin_calls("cuMemAllocFromPoolAsync"), 0U);
  EXPECT_EQ(statistics().allocated.current, mib(1));
  free(block, stream);
}

TEST_F(DefaultPool, ADeviceWithAPoolOfItsOwnIsServedByThat) {
  const CUstream stream = make_stream();
  const CUdeviceptr before = allocate(kMib, stream);
  ASSERT_EQ(cuDeviceSetMemPool(0, make_pool()), CUDA_SUCCESS);
  const CUdeviceptr theirs = allocate(kMib, stream);
  EXPECT_EQ(weir_standin_calls("cuMemAllocAsync"), 1U);
  EXPECT_EQ(arena().account().passed(), mib(2)) << "what the driver reserves for it";
  free(before, stream);  // ours still
  EXPECT_EQ(weir_standin_calls("cuMemFreeAsync"), 0U);
  ASSERT_EQ(cuDeviceSetMemPool(0, default_pool()), CUDA_SUCCESS);
  EXPECT_EQ(allocate(kMib, stream), before);
  free(theirs, stream);
  ASSERT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
  (void)free_bytes();  // asks what the driver reserves now
  EXPECT_EQ(arena().account().passed(), Bytes{});
}

}  // namespace
}  // namespace weir::preload::testing
