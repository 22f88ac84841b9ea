#pragma once

/// @file
/// What every call of ours into the CUDA runtime is made in: the right device, and no quarrel with
/// a capture that somebody else has under way.

#include <cuda_runtime_api.h>

namespace weir {

/// While a stream is captured in global mode, the runtime forbids every thread to allocate, free or
/// query, and such a call ends the capture. Ours touch no captured stream: until this ends, the
/// calling thread may make them.
class CudaRelaxed {
 public:
  CudaRelaxed() noexcept;
  ~CudaRelaxed();
  CudaRelaxed(const CudaRelaxed&) = delete;
  CudaRelaxed& operator=(const CudaRelaxed&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

/// Makes `device` the calling thread's current one until it ends, and is relaxed as well.
class CudaScope {
 public:
  /// Throws CudaError where the device cannot be used.
  explicit CudaScope(int device) : current_(device) {}

 private:
  /// First: on another device a relaxed thread would have a context made for it there.
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
