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
    buffers_.deallocate(oldest.buffer);
    lock.lock();
  }
}

std::optional<Point> Staging::oldest_returned() const {
  const Lock lock(mutex_);
  return returned_.empty() ? std::nullopt : std::optional{returned_.front().copied};
}

Staging::Buffer Staging::acquire(std::size_t elements) {
  const Bytes size{elements * sizeof(float)};
  for (;;) {
    release_passed();
    const Buffer buffer = buffers_.allocate(size);
    if (buffer.pointer != nullptr) return buffer;
    // Waits for a submitted copy. Without one, no buffer becomes free by waiting.
    const auto oldest = oldest_returned();
    if (!oldest) break;
    (void)progress_.wait(*oldest, {});
  }
  throw OutOfMemory("out of host memory for batches in flight to the device: a buffer of " +
                        format_bytes(size) + " was refused, " +
                        format_bytes(buffers_.reserved().current) + " are in use",
                    {.asked = size, .block = size, .allocated = buffers_.reserved().current});
}

void Staging::give_back(Buffer buffer, Point copied) {
  const Lock lock(mutex_);
  returned_.push_back({buffer, copied});
}

void Staging::release_below(std::size_t elements) {
  release_passed();
  (void)buffers_.release_below({elements * sizeof(float)});
}

}  // namespace weir
