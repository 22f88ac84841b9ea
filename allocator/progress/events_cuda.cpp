#include "allocator/progress/events_cuda.hpp"

#include "allocator/base/error_cuda.hpp"
#include "allocator/base/scope_cuda.hpp"

namespace weir {
namespace {

template <typename Call>
cudaError_t code_on(int device, const Call& call) noexcept {
  try {
    const CudaScope scope(device);
    return take_cuda_error(call());
  } catch (const CudaError& error) {
    return error.code();
  } catch (...) {
    return cudaErrorMemoryAllocation;
  }
}

}  // namespace

cudaError_t CudaEventCalls::create(Event& event) const noexcept {
  unsigned flags = cudaEventDisableTiming;
  if (wait_ == CudaEventWait::kSleeps) flags |= cudaEventBlockingSync;
  return code_on(device_, [&] { return cudaEventCreateWithFlags(&event, flags); });
}

cudaError_t CudaEventCalls::record(Event event, Stream stream) const noexcept {
  return take_cuda_error(cudaEventRecord(event, stream));
}

cudaError_t CudaEventCalls::query(Event event) const noexcept {
  return take_cuda_error(cudaEventQuery(event));
}

cudaError_t CudaEventCalls::destroy(Event event) const noexcept {
  return code_on(device_, [&] { return cudaEventDestroy(event); });
}

}  // namespace weir
