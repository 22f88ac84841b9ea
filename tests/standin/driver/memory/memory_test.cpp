// Memory of the device, of pools and of arrays: what is counted, what is refused, and its contents.

#include <cstdint>

#include "support/sanitized.hpp"
#include "tests/standin/fixture.hpp"

namespace weir::standin::testing {
namespace {

class StandInMemory : public StandIn {
 protected:
  static cudaPointerAttributes attributes_of(const void* pointer) {
    cudaPointerAttributes attributes{};
    ok(cudaPointerGetAttributes(&attributes, pointer));
    return attributes;
  }
};

TEST_F(StandInMemory, NewMemoryHoldsNoZeros) {
  EXPECT_TRUE(all_bytes(make_memory(kMiB), 0xA5, kMiB));
  unsigned char* large = make_memory(64 * kMiB);
  EXPECT_EQ(large[0], 0xA5);
  EXPECT_EQ(large[64 * kMiB - 1], 0xA5);
}

#if !WEIR_TEST_SANITIZED
TEST_F(StandInMemory, FreedMemoryIsNotWhatItWas) {
  // The heap itself writes into the first bytes of freed memory.
  unsigned char* memory = make_memory(4096);
  ok(cudaMemset(memory, 1, 4096));
  ok(cudaFree(memory));
  const volatile unsigned char* late = memory;
  EXPECT_EQ(late[2048], 0xDD);
}
#endif

TEST_F(StandInMemory, LargeFreedMemoryCannotBeTouched) {
  unsigned char* memory = make_memory(64 * kMiB);
  ok(cudaFree(memory));
  EXPECT_DEATH(*static_cast<volatile unsigned char*>(memory) = 1, "");
}

TEST_F(StandInMemory, UnknownPointersAreNotFreed) {
  int here = 0;
  unsigned char* memory = make_memory();
  EXPECT_EQ(cudaFree(&here), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(memory + 1), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFreeHost(memory), cudaErrorInvalidValue);
  ok(cudaFree(memory));
  EXPECT_EQ(cudaFree(memory), cudaErrorInvalidValue);
}

TEST_F(StandInMemory, AFreeWaitsForTheDevice) {
  void* managed = nullptr;
  ok(cudaMallocManaged(&managed, 512, cudaMemAttachGlobal));
  for (void* memory : {static_cast<void*>(make_memory()), managed}) {
    weir_standin_delay(stream_, 1'000'000);
    ok(cudaMemsetAsync(memory, 1, 512, stream_));
    ok(cudaFree(memory));
    EXPECT_EQ(weir_standin_pending(stream_), 0U);
  }
}

TEST_F(StandInMemory, DeviceMemoryIsKnownByAnyOfItsAddresses) {
  unsigned char* memory = make_memory(4096);
  const cudaPointerAttributes attributes = attributes_of(memory + 4095);
  EXPECT_EQ(attributes.type, cudaMemoryTypeDevice);
  EXPECT_EQ(attributes.device, 0);
  EXPECT_EQ(attributes.devicePointer, memory + 4095);
}

TEST_F(StandInMemory, InRowsHasAPitch) {
  void* memory = nullptr;
  std::size_t pitch = 0;
  ok(cudaMallocPitch(&memory, &pitch, 1000, 7));
  EXPECT_EQ(pitch, 1024U);
  EXPECT_EQ(weir_standin_used(0), 7168U);
  ok(cudaFree(memory));
  EXPECT_EQ(cudaMallocPitch(&memory, &pitch, SIZE_MAX / 2, 3), cudaErrorMemoryAllocation);
  CUdeviceptr rows = 0;
  EXPECT_EQ(cuMemAllocPitch_v2(&rows, &pitch, 16, 16, 2), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemAllocPitch_v2(&rows, &pitch, 0, 16, 4), CUDA_ERROR_INVALID_VALUE);
  ok(cuMemAllocPitch_v2(&rows, &pitch, 512, 1, 16));
  EXPECT_EQ(pitch, 512U);
}

TEST_F(StandInMemory, FreedTooEarlyIsNotTouched) {
  cudaStream_t late = make_stream();
  void* memory = nullptr;
  ok(cudaMallocAsync(&memory, 4096, stream_));
  while_held(late, [&] {
    ok(cudaMemsetAsync(memory, 1, 4096, late));
    // This stream is not ordered behind the other.
    ok(cudaFreeAsync(memory, stream_));
    sync();
    EXPECT_EQ(weir_standin_late_uses(), 0U);
  });
  EXPECT_EQ(cudaStreamSynchronize(late), cudaErrorIllegalAddress);
  EXPECT_EQ(weir_standin_late_uses(), 1U);
  weir_standin_clear_faults();
}

TEST_F(StandInMemory, AtTheSameAddressIsOtherMemory) {
  void* memory = nullptr;
  void* next = nullptr;
  ok(cudaMallocAsync(&memory, 4096, stream_));
  unsigned char* other = make_memory(4096);
  while_held([&] {
    ok(cudaMemcpyAsync(other, memory, 4096, cudaMemcpyDeviceToDevice, stream_));
    ok(cudaFree(memory));
    ok(cudaMallocAsync(&next, 4096, stream_));
  });
  EXPECT_EQ(cudaStreamSynchronize(stream_), cudaErrorIllegalAddress);
  EXPECT_EQ(weir_standin_late_uses(), 1U);
  weir_standin_clear_faults();
}

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

TEST_F(StandInPool, ASynchronousFreeOfPooledMemoryDoesNotWait) {
  unsigned char* memory = take(512);
  unsigned char* other = make_memory();
  while_held([&] {
    ok(cudaMemsetAsync(other, 1, 512, stream_));
    ok(cudaFree(memory));
    EXPECT_EQ(cudaStreamQuery(stream_), cudaErrorNotReady);
  });
}

class StandInArray : public StandIn {
 protected:
  static CUDA_ARRAY3D_DESCRIPTOR floats(std::size_t width, std::size_t height, std::size_t depth,
                                        unsigned int flags = 0) {
    CUDA_ARRAY3D_DESCRIPTOR wanted{};
    wanted.Width = width;
    wanted.Height = height;
    wanted.Depth = depth;
    wanted.Format = CU_AD_FORMAT_FLOAT;
    wanted.NumChannels = 1;
    wanted.Flags = flags;
    return wanted;
  }
  /// The device memory of an array, which it releases.
  static std::size_t bytes_of(const CUDA_ARRAY3D_DESCRIPTOR& wanted) {
    CUarray array = nullptr;
    ok(cuArray3DCreate_v2(&array, &wanted));
    const std::size_t used = weir_standin_used(0);
    ok(cuArrayDestroy(array));
    EXPECT_EQ(weir_standin_used(0), 0U);
    return used;
  }
  static std::size_t bytes_of(const CUDA_ARRAY3D_DESCRIPTOR& wanted, unsigned int levels) {
    CUmipmappedArray array = nullptr;
    ok(cuMipmappedArrayCreate(&array, &wanted, levels));
    const std::size_t used = weir_standin_used(0);
    ok(cuMipmappedArrayDestroy(array));
    EXPECT_EQ(weir_standin_used(0), 0U);
    return used;
  }
  static CUresult create(const CUDA_ARRAY3D_DESCRIPTOR& wanted) {
    CUarray array = nullptr;
    return cuArray3DCreate_v2(&array, &wanted);
  }
};

TEST_F(StandInArray, TakesFormatTimesChannelsTimesExtents) {
  EXPECT_EQ(bytes_of(floats(2048, 0, 0)), 2048U * 4);
  EXPECT_EQ(bytes_of(floats(64, 64, 0)), 64U * 64 * 4);
  EXPECT_EQ(bytes_of(floats(64, 32, 16)), 64U * 32 * 16 * 4);
  EXPECT_EQ(bytes_of(floats(1, 0, 0)), 512U);
  CUDA_ARRAY3D_DESCRIPTOR halves = floats(128, 128, 0);
  halves.Format = CU_AD_FORMAT_HALF;
  halves.NumChannels = 4;
  EXPECT_EQ(bytes_of(halves), 128U * 128 * 8);
}

TEST_F(StandInArray, OfLevelsTakesEachOfThemHalved) {
  EXPECT_EQ(bytes_of(floats(256, 256, 0), 1), 256U * 256 * 4);
  EXPECT_EQ(bytes_of(floats(256, 256, 0), 2), (256U * 256 + 128U * 128) * 4);
  EXPECT_EQ(bytes_of(floats(128, 64, 2, CUDA_ARRAY3D_LAYERED), 2), (128U * 64 + 64U * 32) * 2 * 4);
  // No more than there can be: 8, 4, 2 and 1 wide.
  EXPECT_EQ(bytes_of(floats(256, 8, 0), 0), 256U * 8 * 4);
  EXPECT_EQ(bytes_of(floats(8, 8, 0), 100), 512U);
  EXPECT_EQ(bytes_of(floats(256, 0, 0), 100), 2048U);
}

TEST_F(StandInArray, OfAnInvalidDescriptorIsRefused) {
  EXPECT_EQ(create(floats(0, 0, 0)), CUDA_ERROR_INVALID_VALUE);
  CUDA_ARRAY3D_DESCRIPTOR wanted = floats(16, 16, 0);
  wanted.NumChannels = 3;
  EXPECT_EQ(create(wanted), CUDA_ERROR_INVALID_VALUE);
  wanted = floats(16, 16, 0);
  wanted.Format = static_cast<CUarray_format>(7);
  EXPECT_EQ(create(wanted), CUDA_ERROR_INVALID_VALUE);
  wanted.Format = static_cast<CUarray_format>(0x91);  // compressed, which is not imitated
  EXPECT_EQ(create(wanted), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(cuArrayCreate_v2(nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(weir_standin_used(0), 0U);
  EXPECT_EQ(weir_standin_live().arrays, 0U);
}

TEST_F(StandInArray, IsMadeByTheRuntimeToo) {
  cudaArray_t array = nullptr;
  const cudaChannelFormatDesc pairs{16, 16, 0, 0, cudaChannelFormatKindUnsigned};
  ok(cudaMallocArray(&array, &pairs, 100, 10, cudaArrayDefault));
  EXPECT_EQ(weir_standin_used(0), 4096U);  // of 4000
  ok(cudaFreeArray(array));
  ok(cudaMallocArray(&array, &pairs, 100, 10, cudaArraySurfaceLoadStore));
  ok(cudaFreeArray(array));
  EXPECT_EQ(weir_standin_used(0), 0U);
  ok(cudaFreeArray(nullptr));
  const cudaChannelFormatDesc three{8, 8, 8, 0, cudaChannelFormatKindUnsigned};
  EXPECT_EQ(cudaMallocArray(&array, &three, 1, 1, 0), cudaErrorInvalidChannelDescriptor);
  const cudaChannelFormatDesc small{8, 0, 0, 0, cudaChannelFormatKindFloat};
  EXPECT_EQ(cudaMallocArray(&array, &small, 1, 1, 0), cudaErrorInvalidChannelDescriptor);
}

}  // namespace
}  // namespace weir::standin::testing
