// Device and host memory: what is counted, what is refused, and its contents.

#include <cstdint>

#include "support/sanitized.hpp"
#include "tests/standin/fixture.hpp"

namespace weir::standin::testing {
namespace {

class StandInMemory : public StandIn {
 protected:
  static std::size_t free_bytes() {
    std::size_t free = 0;
    std::size_t total = 0;
    EXPECT_EQ(cudaMemGetInfo(&free, &total), cudaSuccess);
    return free;
  }
};

TEST_F(StandInMemory, IsAsMuchAsWasSet) {
  weir_standin_set_memory(64 * kMiB);
  std::size_t free = 0;
  std::size_t total = 0;
  ASSERT_EQ(cudaMemGetInfo(&free, &total), cudaSuccess);
  EXPECT_EQ(total, 64 * kMiB);
  EXPECT_EQ(free, 64 * kMiB);
}

TEST_F(StandInMemory, IsCountedFromAllocationToFree) {
  const std::size_t before = free_bytes();
  unsigned char* memory = make_memory(kMiB + 1);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % 512, 0U);
  EXPECT_EQ(before - free_bytes(), kMiB + 512);
  EXPECT_EQ(weir_standin_used(0), kMiB + 512);
  EXPECT_EQ(weir_standin_live().device_bytes, kMiB + 1);
  ASSERT_EQ(cudaFree(memory), cudaSuccess);
  EXPECT_EQ(free_bytes(), before);
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
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_EQ(cudaMalloc(&more, kMiB), cudaSuccess);
  EXPECT_EQ(cudaMalloc(&more, SIZE_MAX - 3), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaFree(most), cudaSuccess);
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
  ASSERT_EQ(cudaFree(half), cudaSuccess);
  EXPECT_EQ(free_bytes(), kLarge / 2);
  weir_standin_set_addresses_only(0);  // for later allocations
  unsigned char* memory = make_memory(kMiB);
  memory[0] = 1;
  ASSERT_EQ(cudaFree(rest), cudaSuccess);
  ASSERT_EQ(cudaFree(memory), cudaSuccess);
  EXPECT_EQ(free_bytes(), kLarge);
}

TEST_F(StandInMemory, OfNoBytesIsNothing) {
  void* memory = &memory;
  EXPECT_EQ(cudaMalloc(&memory, 0), cudaSuccess);
  EXPECT_EQ(memory, nullptr);
  EXPECT_EQ(cudaFree(nullptr), cudaSuccess);
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
  ASSERT_EQ(cudaMemset(memory, 1, 4096), cudaSuccess);
  ASSERT_EQ(cudaFree(memory), cudaSuccess);
  const volatile unsigned char* late = memory;
  EXPECT_EQ(late[2048], 0xDD);
}
#endif

TEST_F(StandInMemory, LargeFreedMemoryCannotBeTouched) {
  unsigned char* memory = make_memory(64 * kMiB);
  ASSERT_EQ(cudaFree(memory), cudaSuccess);
  EXPECT_DEATH(*static_cast<volatile unsigned char*>(memory) = 1, "");
}

TEST_F(StandInMemory, UnknownPointersAreNotFreed) {
  int here = 0;
  unsigned char* memory = make_memory();
  EXPECT_EQ(cudaFree(&here), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(memory + 1), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFreeHost(memory), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
  EXPECT_EQ(cudaFree(memory), cudaErrorInvalidValue);
}

TEST_F(StandInMemory, AFreeWaitsForTheDevice) {
  unsigned char* memory = make_memory();
  cudaStream_t stream = make_stream();
  weir_standin_delay(stream, 1'000'000);
  ASSERT_EQ(cudaMemsetAsync(memory, 1, 512, stream), cudaSuccess);
  ASSERT_EQ(cudaFree(memory), cudaSuccess);
  EXPECT_EQ(weir_standin_pending(stream), 0U);
}

TEST_F(StandInMemory, PinnedMemoryIsKnownAndNotTheDevices) {
  unsigned char* memory = make_pinned();
  EXPECT_EQ(weir_standin_used(0), 0U);
  EXPECT_EQ(weir_standin_live().host_blocks, 1U);
  cudaPointerAttributes attributes{};
  ASSERT_EQ(cudaPointerGetAttributes(&attributes, memory + 5), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeHost);
  EXPECT_EQ(attributes.hostPointer, memory + 5);
  void* device = nullptr;
  ASSERT_EQ(cudaHostGetDevicePointer(&device, memory, 0), cudaSuccess);
  EXPECT_EQ(device, memory);
  EXPECT_EQ(cudaFree(memory), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFreeHost(memory), cudaSuccess);
  EXPECT_EQ(weir_standin_live().host_blocks, 0U);
}

TEST_F(StandInMemory, RegisteredMemoryIsPinnedUntilItIsNot) {
  unsigned char own[256] = {};
  ASSERT_EQ(cudaHostRegister(own, sizeof own, cudaHostRegisterDefault), cudaSuccess);
  EXPECT_EQ(cudaHostRegister(own, sizeof own, cudaHostRegisterDefault),
            cudaErrorHostMemoryAlreadyRegistered);
  cudaPointerAttributes attributes{};
  ASSERT_EQ(cudaPointerGetAttributes(&attributes, own), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeHost);
  EXPECT_EQ(cudaFreeHost(own), cudaErrorInvalidValue);
  EXPECT_EQ(cudaHostUnregister(own), cudaSuccess);
  EXPECT_EQ(cudaHostUnregister(own), cudaErrorHostMemoryNotRegistered);
  ASSERT_EQ(cudaPointerGetAttributes(&attributes, own), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeUnregistered);
}

TEST_F(StandInMemory, DeviceMemoryIsKnownByAnyOfItsAddresses) {
  unsigned char* memory = make_memory(4096);
  cudaPointerAttributes attributes{};
  ASSERT_EQ(cudaPointerGetAttributes(&attributes, memory + 4095), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeDevice);
  EXPECT_EQ(attributes.device, 0);
  EXPECT_EQ(attributes.devicePointer, memory + 4095);
}

TEST_F(StandInMemory, InRowsHasAPitch) {
  void* memory = nullptr;
  std::size_t pitch = 0;
  ASSERT_EQ(cudaMallocPitch(&memory, &pitch, 1000, 7), cudaSuccess);
  EXPECT_EQ(pitch, 1024U);
  EXPECT_EQ(weir_standin_used(0), 7168U);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
  EXPECT_EQ(cudaMallocPitch(&memory, &pitch, SIZE_MAX / 2, 3), cudaErrorMemoryAllocation);
  CUdeviceptr rows = 0;
  EXPECT_EQ(cuMemAllocPitch_v2(&rows, &pitch, 16, 16, 2), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemAllocPitch_v2(&rows, &pitch, 0, 16, 4), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemAllocPitch_v2(&rows, &pitch, 512, 1, 16), CUDA_SUCCESS);
  EXPECT_EQ(pitch, 512U);
}

TEST_F(StandInMemory, OfTheManagedKindIsCountedAndOfBothSides) {
  void* memory = nullptr;
  ASSERT_EQ(cudaMallocManaged(&memory, kMiB, cudaMemAttachGlobal), cudaSuccess);
  EXPECT_EQ(weir_standin_used(0), kMiB);
  auto* bytes = static_cast<unsigned char*>(memory);
  std::fill_n(bytes, 512, static_cast<unsigned char>(5));
  unsigned char* device = make_memory();
  EXPECT_EQ(cudaMemcpy(device, bytes, 512, cudaMemcpyHostToDevice), cudaSuccess);
  EXPECT_EQ(cudaMemcpy(bytes + 512, device, 512, cudaMemcpyDeviceToDevice), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_TRUE(all_bytes(bytes, 5, 1024));
  cudaPointerAttributes attributes{};
  ASSERT_EQ(cudaPointerGetAttributes(&attributes, bytes + 7), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeManaged);
  EXPECT_EQ(attributes.hostPointer, bytes + 7);
  EXPECT_EQ(attributes.devicePointer, bytes + 7);
  EXPECT_EQ(cudaFreeHost(memory), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFreeAsync(memory, nullptr), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
  EXPECT_EQ(weir_standin_used(0), 512U);
  EXPECT_EQ(cudaMallocManaged(&memory, 0, cudaMemAttachGlobal), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMallocManaged(&memory, 1, cudaMemAttachSingle), cudaErrorInvalidValue);
}

TEST_F(StandInMemory, AFreeOfManagedMemoryWaitsForTheDeviceToo) {
  void* memory = nullptr;
  ASSERT_EQ(cudaMallocManaged(&memory, 512, cudaMemAttachGlobal), cudaSuccess);
  cudaStream_t stream = make_stream();
  weir_standin_delay(stream, 1'000'000);
  ASSERT_EQ(cudaMemsetAsync(memory, 1, 512, stream), cudaSuccess);
  ASSERT_EQ(cudaFree(memory), cudaSuccess);
  EXPECT_EQ(weir_standin_pending(stream), 0U);
}

TEST_F(StandInMemory, FreedTooEarlyIsNotTouched) {
  cudaStream_t stream = make_stream();
  cudaStream_t late = make_stream();
  void* memory = nullptr;
  ASSERT_EQ(cudaMallocAsync(&memory, 4096, stream), cudaSuccess);
  weir_standin_hold(late);
  ASSERT_EQ(cudaMemsetAsync(memory, 1, 4096, late), cudaSuccess);
  // This stream is not ordered behind the other.
  ASSERT_EQ(cudaFreeAsync(memory, stream), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(weir_standin_late_uses(), 0U);
  weir_standin_release(late);
  EXPECT_EQ(cudaStreamSynchronize(late), cudaErrorIllegalAddress);
  EXPECT_EQ(weir_standin_late_uses(), 1U);
  weir_standin_clear_faults();
}

TEST_F(StandInMemory, AtTheSameAddressIsOtherMemory) {
  cudaStream_t late = make_stream();
  void* memory = nullptr;
  void* next = nullptr;
  ASSERT_EQ(cudaMallocAsync(&memory, 4096, late), cudaSuccess);
  unsigned char* other = make_memory(4096);
  weir_standin_hold(late);
  ASSERT_EQ(cudaMemcpyAsync(other, memory, 4096, cudaMemcpyDeviceToDevice, late), cudaSuccess);
  ASSERT_EQ(cudaFree(memory), cudaSuccess);
  ASSERT_EQ(cudaMallocAsync(&next, 4096, late), cudaSuccess);
  weir_standin_release(late);
  EXPECT_EQ(cudaStreamSynchronize(late), cudaErrorIllegalAddress);
  EXPECT_EQ(weir_standin_late_uses(), 1U);
  weir_standin_clear_faults();
}

TEST_F(StandInMemory, OfTwoDevicesIsCountedApart) {
  weir_standin_set_devices(2);
  unsigned char* first = make_memory(kMiB);
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  unsigned char* second = make_memory(2 * kMiB);
  EXPECT_EQ(weir_standin_used(0), kMiB);
  EXPECT_EQ(weir_standin_used(1), 2 * kMiB);
  EXPECT_EQ(cudaFree(first), cudaSuccess);
  EXPECT_EQ(cudaFree(second), cudaSuccess);
  EXPECT_EQ(weir_standin_used(0), 0U);
  EXPECT_EQ(weir_standin_used(1), 0U);
  EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
}

}  // namespace
}  // namespace weir::standin::testing
