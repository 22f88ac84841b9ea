#include "trainer/data/staging.hpp"

#include <string>

#include "allocator/base/error.hpp"

namespace weir {

void Staging::release_passed() {
  // Copies complete in the order in which they were enqueued, so only the oldest needs a check.
  Lock lock(mutex_);
  while (!returned_.empty()) {
    const Returned oldest = returned_.front();
    lock.unlock();
    const bool passed = progress_.reached(oldest.copied);
    lock.lock();
    if (!passed) return;
    // Another thread may have released it meanwhile; it may even have been returned again.
    if (returned_.empty() || returned_.front() != oldest) continue;
    returned_.pop_front();
    lock.unlock();
    buffers_.deallocate({oldest.buffer, buffer_size()});
    lock.lock();
  }
}

std::optional<Point> Staging::oldest_returned() const {
  const Lock lock(mutex_);
  return returned_.empty() ? std::nullopt : std::optional{returned_.front().copied};
}

float* Staging::acquire() {
  for (;;) {
    release_passed();
    void* buffer = buffers_.allocate(buffer_size()).pointer;
    if (buffer != nullptr) return static_cast<float*>(buffer);
    // Waits for a submitted copy. Without one, no buffer becomes free by waiting.
    const auto oldest = oldest_returned();
    if (!oldest) break;
    (void)progress_.wait(*oldest, {});
  }
  throw OutOfMemory(
      "out of host memory for batches in flight to the device: a buffer of " +
          format_bytes(buffer_size()) + " was refused, " +
          format_bytes(buffers_.reserved().current) + " are in use",
      {.asked = buffer_size(), .block = buffer_size(), .allocated = buffers_.reserved().current});
}

void Staging::give_back(float* buffer, Point copied) {
  const Lock lock(mutex_);
  returned_.push_back({buffer, copied});
}

}  // namespace weir
