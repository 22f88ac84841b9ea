#include "allocator/memory/upstream_cuda.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <exception>
#include <string>

#include "allocator/base/error_cuda.hpp"
#include "allocator/base/log.hpp"
#include "allocator/memory/page_source_cuda.hpp"

namespace weir {
namespace {

/// Charges `size` to the gauge and calls `call(&pointer)`. Uncharges it if that fails.
template <typename Call>
void* allocate_checked(CapacityGauge& gauge, int device, Bytes size, const char* name, Call call) {
  if (!gauge.take(size)) return nullptr;
  try {
    const CudaScope scope(device);
    void* pointer = nullptr;
    const cudaError_t code = take_cuda_error(call(&pointer));
    if (code == cudaSuccess) return pointer;
    if (code != cudaErrorMemoryAllocation) throw CudaError(name, code, format_bytes(size));
    gauge.withdraw(size);
    return nullptr;
  } catch (...) {
    gauge.withdraw(size);
    throw;
  }
}

/// Memory that cannot be returned stays charged permanently.
template <typename Call>
void deallocate_checked(CapacityGauge& gauge, int device, Bytes size, const char* name,
                        Call call) noexcept {
  try {
    const CudaScope scope(device);
    check_cuda(call(), name);
    gauge.withdraw(size);
  } catch (const std::exception& error) {
    log(LogLevel::kError, format_bytes(size) + " cannot be released: " + error.what());
  }
}

}  // namespace

CudaMemory cuda_memory_info(int device) {
  const CudaScope scope(device);
  std::size_t free = 0;
  std::size_t total = 0;
  check_cuda(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  return {.total = {total}, .free = {free}};
}

CudaUpstream::CudaUpstream(int device, Bytes capacity)
    : device_(device), gauge_(capacity.count != 0 ? capacity : cuda_memory_info(device).total) {}

void* CudaUpstream::allocate(Bytes size) {
  return allocate_checked(gauge_, device_, size, "cudaMalloc",
                          [size](void** pointer) { return cudaMalloc(pointer, size.count); });
}

void CudaUpstream::deallocate(void* pointer, Bytes size) noexcept {
  deallocate_checked(gauge_, device_, size, "cudaFree", [pointer] { return cudaFree(pointer); });
}

Bytes CudaUpstream::available() const {
  return std::min(cuda_memory_info(device_).free, minus_or_zero(capacity(), used()));
}

PageSource* CudaUpstream::pages() noexcept {
  return pages_.get([this] { return CudaPages::open(device_, gauge_); });
}

void* PinnedUpstream::allocate(Bytes size) {
  return allocate_checked(gauge_, device_, size, "cudaHostAlloc", [size](void** pointer) {
    return cudaHostAlloc(pointer, size.count, cudaHostAllocPortable);
  });
}

void PinnedUpstream::deallocate(void* pointer, Bytes size) noexcept {
  deallocate_checked(gauge_, device_, size, "cudaFreeHost",
                     [pointer] { return cudaFreeHost(pointer); });
}

}  // namespace weir
