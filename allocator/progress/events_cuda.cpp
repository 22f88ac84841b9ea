#include "allocator/progress/events_cuda.hpp"

namespace weir {

cudaError_t CudaEventCalls::create(Event& event) const noexcept {
  unsigned flags = cudaEventDisableTiming;
  if (wait_ == CudaEventWait::kSleeps) flags |= cudaEventBlockingSync;
  return code_on_device(device_, [&] { return cudaEventCreateWithFlags(&event, flags); });
}

cudaError_t CudaEventCalls::record(Event event, Stream stream) const noexcept {
  return code_for_stream(stream, device_, [&] { return cudaEventRecord(event, stream); });
}

cudaError_t CudaEventCalls::query(Event event) const noexcept {
  return take_cuda_error(cudaEventQuery(event));
}

cudaError_t CudaEventCalls::destroy(Event event) const noexcept {
  return code_on_device(device_, [&] { return cudaEventDestroy(event); });
}

}  // namespace weir
