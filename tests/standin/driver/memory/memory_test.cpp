// Device and host memory: what is counted, what is refused, and its contents.

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
  static std::size_t free_bytes() {
    std::size_t free = 0;
    std::size_t total = 0;
    ok(cudaMemGetInfo(&free, &total));
    return free;
  }
};

TEST_F(StandInMemory, IsCountedFromAllocationToFree) {
  weir_standin_set_memory(64 * kMiB);
  EXPECT_EQ(free_bytes(), 64 * kMiB);
  unsigned char* memory = make_memory(kMiB + 1);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % 512, 0U);
  EXPECT_EQ(free_bytes(), 63 * kMiB - 512);
  EXPECT_EQ(weir_standin_used(0), kMiB + 512);
  EXPECT_EQ(weir_standin_live().device_bytes, kMiB + 1);
  ok(cudaFree(memory));
  EXPECT_EQ(free_bytes(), 64 * kMiB);
  EXPECT_EQ(weir_standin_peak(0), kMiB + 512);
  EXPECT_EQ(weir_standin_live().device_blocks, 0U);
}

TEST_F(StandInMemory, RunsOutAtItsSize) {
  weir_standin_set_memory(8 * kMiB);
  unsigned char* most = make_memory(7 * kMiB);
  void* more = nullptr;
  EXPECT_EQ(cudaMalloc(&more, kMiB + 1), cudaErrorMemoryAllocation);
  EXPECT_EQ(more, nullptr);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
  ok(cudaGetLastError());
  ok(cudaMalloc(&more, kMiB));
  EXPECT_EQ(cudaMalloc(&more, SIZE_MAX - 3), cudaErrorMemoryAllocation);
  ok(cudaFree(most));
}

TEST_F(StandInMemory, CanBeAddressesOnlyOfADeviceOfAnySize) {
  constexpr std::size_t kLarge = std::size_t{1} << 34U;
  weir_standin_set_memory(kLarge);
  weir_standin_set_addresses_only(1);
  unsigned char* half = make_memory(kLarge / 2);
  unsigned char* rest = make_memory(kLarge / 2);
  void* more = nullptr;
  EXPECT_EQ(cudaMalloc(&more, 1), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
  ok(cudaFree(half));
  EXPECT_EQ(free_bytes(), kLarge / 2);
  weir_standin_set_addresses_only(0);  // for later allocations
  unsigned char* memory = make_memory(kMiB);
  memory[0] = 1;
  ok(cudaFree(rest));
  ok(cudaFree(memory));
  EXPECT_EQ(free_bytes(), kLarge);
}

TEST_F(StandInMemory, OfNoBytesIsNothing) {
  void* memory = &memory;
  ok(cudaMalloc(&memory, 0));
  EXPECT_EQ(memory, nullptr);
  ok(cudaFree(nullptr));
}

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

TEST_F(StandInMemory, PinnedMemoryIsKnownAndNotTheDevices) {
  unsigned char* memory = make_pinned();
  EXPECT_EQ(weir_standin_used(0), 0U);
  EXPECT_EQ(weir_standin_live().host_blocks, 1U);
  EXPECT_EQ(attributes_of(memory + 5).type, cudaMemoryTypeHost);
  EXPECT_EQ(attributes_of(memory + 5).hostPointer, memory + 5);
  void* device = nullptr;
  ok(cudaHostGetDevicePointer(&device, memory, 0));
  EXPECT_EQ(device, memory);
  EXPECT_EQ(cudaFree(memory), cudaErrorInvalidValue);
  ok(cudaFreeHost(memory));
  EXPECT_EQ(weir_standin_live().host_blocks, 0U);
}

TEST_F(StandInMemory, RegisteredMemoryIsPinnedUntilItIsNot) {
  unsigned char own[256] = {};
  ok(cudaHostRegister(own, sizeof own, cudaHostRegisterDefault));
  EXPECT_EQ(cudaHostRegister(own, sizeof own, cudaHostRegisterDefault),
            cudaErrorHostMemoryAlreadyRegistered);
  EXPECT_EQ(attributes_of(own).type, cudaMemoryTypeHost);
  EXPECT_EQ(cudaFreeHost(own), cudaErrorInvalidValue);
  ok(cudaHostUnregister(own));
  EXPECT_EQ(cudaHostUnregister(own), cudaErrorHostMemoryNotRegistered);
  EXPECT_EQ(attributes_of(own).type, cudaMemoryTypeUnregistered);
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

TEST_F(StandInMemory, OfTheManagedKindIsCountedAndOfBothSides) {
  void* memory = nullptr;
  ok(cudaMallocManaged(&memory, kMiB, cudaMemAttachGlobal));
  EXPECT_EQ(weir_standin_used(0), kMiB);
  auto* bytes = static_cast<unsigned char*>(memory);
  std::fill_n(bytes, 512, static_cast<unsigned char>(5));
  unsigned char* device = make_memory();
  ok(cudaMemcpy(device, bytes, 512, cudaMemcpyHostToDevice));
  ok(cudaMemcpy(bytes + 512, device, 512, cudaMemcpyDeviceToDevice));
  ok(cudaDeviceSynchronize());
  EXPECT_TRUE(all_bytes(bytes, 5, 1024));
  const cudaPointerAttributes attributes = attributes_of(bytes + 7);
  EXPECT_EQ(attributes.type, cudaMemoryTypeManaged);
  EXPECT_EQ(attributes.hostPointer, bytes + 7);
  EXPECT_EQ(attributes.devicePointer, bytes + 7);
  EXPECT_EQ(cudaFreeHost(memory), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFreeAsync(memory, nullptr), cudaErrorInvalidValue);
  ok(cudaFree(memory));
  EXPECT_EQ(weir_standin_used(0), 512U);
  EXPECT_EQ(cudaMallocManaged(&memory, 0, cudaMemAttachGlobal), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMallocManaged(&memory, 1, cudaMemAttachSingle), cudaErrorInvalidValue);
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

TEST_F(StandInMemory, OfTwoDevicesIsCountedApart) {
  weir_standin_set_devices(2);
  unsigned char* first = make_memory(kMiB);
  ok(cudaSetDevice(1));
  unsigned char* second = make_memory(2 * kMiB);
  EXPECT_EQ(weir_standin_used(0), kMiB);
  EXPECT_EQ(weir_standin_used(1), 2 * kMiB);
  ok(cudaFree(first));
  ok(cudaFree(second));
  EXPECT_EQ(weir_standin_used(0), 0U);
  EXPECT_EQ(weir_standin_used(1), 0U);
  ok(cudaSetDevice(0));
}

}  // namespace
}  // namespace weir::standin::testing
