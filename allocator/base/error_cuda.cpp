#include "allocator/base/error_cuda.hpp"

namespace weir {
namespace {

std::string message(std::string_view call, cudaError_t code, std::string_view note) {
  std::string text = std::string(call) + " failed: " + describe_cuda_error(code);
  if (!note.empty()) text += " (" + std::string(note) + ")";
  return text;
}

}  // namespace

CudaError::CudaError(std::string_view call, cudaError_t code, std::string_view note)
    : Error(message(call, code, note)), code_(code) {}

cudaError_t take_cuda_error(cudaError_t code) noexcept {
  if (code != cudaSuccess) (void)cudaGetLastError();
  return code;
}

void check_cuda(cudaError_t code, std::string_view call) {
  if (take_cuda_error(code) != cudaSuccess) throw CudaError(call, code);
}

std::string describe_cuda_error(cudaError_t code) {
  return std::string(cudaGetErrorName(code)) + " (" + std::to_string(static_cast<int>(code)) +
         "): " + cudaGetErrorString(code);
}

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
