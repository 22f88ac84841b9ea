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

// Scopes for our CUDA runtime calls: they select the device and allow calls during another
// thread's capture.

/// Allows the calling thread to allocate, free and query during a capture. While a stream is
/// captured in global mode, such a call on any thread ends the capture. Ours touch no captured
/// stream.
class CudaRelaxed {
 public:
  CudaRelaxed() noexcept;
  ~CudaRelaxed();
  CudaRelaxed(const CudaRelaxed&) = delete;
  CudaRelaxed& operator=(const CudaRelaxed&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

/// Selects `device` for the calling thread, and is relaxed as well.
class CudaScope {
 public:
  /// Throws CudaError if the device cannot be used.
  explicit CudaScope(int device) : current_(device) {}

 private:
  /// First: relaxing a thread on another device creates a context there.
  class Current {
   public:
    explicit Current(int device);
    ~Current();
    Current(const Current&) = delete;
    Current& operator=(const Current&) = delete;

   private:
    int before_ = 0;
    bool changed_ = false;
  };
  Current current_;
  CudaRelaxed relaxed_;
};

}  // namespace weir
