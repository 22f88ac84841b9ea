#include "allocator/base/scope_cuda.hpp"

#include "allocator/base/error_cuda.hpp"

namespace weir {

// With a valid mode the exchange cannot fail. If it did, the calls in the scope would report it.
CudaRelaxed::CudaRelaxed() noexcept {
  (void)take_cuda_error(cudaThreadExchangeStreamCaptureMode(&mode_));
}

CudaRelaxed::~CudaRelaxed() { (void)take_cuda_error(cudaThreadExchangeStreamCaptureMode(&mode_)); }

CudaScope::Current::Current(int device) {
  check_cuda(cudaGetDevice(&before_), "cudaGetDevice");
  if (before_ == device) return;
  check_cuda(cudaSetDevice(device), "cudaSetDevice");
  changed_ = true;
}

CudaScope::Current::~Current() {
  if (changed_) (void)take_cuda_error(cudaSetDevice(before_));
}

}  // namespace weir
