#include "allocator/progress/events_cuda.hpp"

#include "allocator/base/error_cuda.hpp"
#include "allocator/base/log.hpp"
#include "allocator/base/scope_cuda.hpp"

namespace weir {

CudaEvents::~CudaEvents() {
  try {
    const CudaScope scope(device_);
    for (const auto& event : events_)
      check_cuda(cudaEventDestroy(event->handle), "cudaEventDestroy");
  } catch (const std::exception& error) {
    log(LogLevel::kError, std::string("CUDA events are lost: ") + error.what());
  }
}

CudaEvent& CudaEvents::acquire() {
  {
    const Lock lock(mutex_);
    if (!free_.empty()) {
      CudaEvent* event = free_.back();
      free_.pop_back();
      return *event;
    }
  }
  auto event = std::make_unique<CudaEvent>();
  const CudaScope scope(device_);
  const unsigned sleeps = wait_ == CudaEventWait::kSleeps ? cudaEventBlockingSync : 0U;
  check_cuda(cudaEventCreateWithFlags(&event->handle, cudaEventDisableTiming | sleeps),
             "cudaEventCreateWithFlags");
  const Lock lock(mutex_);
  try {
    // Room for every event, so that giving one back cannot fail; doubled, so that it stays cheap.
    if (free_.capacity() <= events_.size()) free_.reserve(2 * events_.size() + 64);
    events_.push_back(std::move(event));
  } catch (...) {
    (void)take_cuda_error(cudaEventDestroy(event->handle));
    throw;
  }
  return *events_.back();
}

void CudaEvents::give_back(CudaEvent& event) noexcept {
  event.retired = false;
  const Lock lock(mutex_);
  free_.push_back(&event);
}

std::size_t CudaEvents::made() const {
  const Lock lock(mutex_);
  return events_.size();
}

}  // namespace weir
