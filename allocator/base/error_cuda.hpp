#pragma once

/// @file
/// Errors of the CUDA runtime. Every call of it goes through `check_cuda` or `take_cuda_error`, so
/// that none is dropped and none is left behind for another caller to meet.

#include <cuda_runtime_api.h>

#include <string>
#include <string_view>

#include "allocator/base/error.hpp"

namespace weir {

/// A call of the CUDA runtime failed. `what()` names the call, the code and what CUDA says of it.
class CudaError : public Error {
 public:
  /// Of a call that returned `code`. `note`, if any, says what it was about.
  CudaError(std::string_view call, cudaError_t code, std::string_view note = {});
  /// What the call returned.
  [[nodiscard]] cudaError_t code() const noexcept { return code_; }

 private:
  cudaError_t code_;
};

/// `code` as it is, with the runtime's memory of it cleared: a later `cudaGetLastError` of anybody
/// says nothing of it. A fault of the device itself cannot be cleared, and stays. Thread-safe.
[[nodiscard]] cudaError_t take_cuda_error(cudaError_t code) noexcept;

/// Throws CudaError unless `code` is success; nothing stale is left behind. Thread-safe.
void check_cuda(cudaError_t code, std::string_view call);

/// `cudaErrorMemoryAllocation (2): out of memory`.
[[nodiscard]] std::string describe_cuda_error(cudaError_t code);

}  // namespace weir
