#pragma once

/// @file
/// Errors of the CUDA runtime. Pass every call's result to `check_cuda` or `take_cuda_error`: none
/// is dropped or left for another caller to find.

#include <cuda_runtime_api.h>

#include <string>
#include <string_view>

#include "allocator/base/error.hpp"

namespace weir {

/// A runtime call failed. `what()` names the call, the code and CUDA's description.
class CudaError : public Error {
 public:
  /// For a call that returned `code`. `note`, if any, adds context.
  CudaError(std::string_view call, cudaError_t code, std::string_view note = {});
  /// Returns what the call returned.
  [[nodiscard]] cudaError_t code() const noexcept { return code_; }

 private:
  cudaError_t code_;
};

/// Returns `code` and clears the runtime's last error, so no later `cudaGetLastError` reports it. A
/// device fault cannot be cleared. Thread-safe.
[[nodiscard]] cudaError_t take_cuda_error(cudaError_t code) noexcept;

/// As `take_cuda_error`, and throws CudaError unless `code` is success. Thread-safe.
void check_cuda(cudaError_t code, std::string_view call);

/// Returns `cudaErrorMemoryAllocation (2): out of memory`, for example.
[[nodiscard]] std::string describe_cuda_error(cudaError_t code);

}  // namespace weir
