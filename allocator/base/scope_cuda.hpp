#pragma once

// Scopes for our CUDA runtime calls: they select the device and allow calls during another
// thread's capture.

#include <cuda_runtime_api.h>

namespace weir {

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
