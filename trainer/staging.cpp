#include "trainer/staging.hpp"

namespace weir {

float* Staging::acquire() {
  Lock lock(mutex_);
  if (!returned_.empty()) {
    // Copies pass in the order in which they were enqueued: the oldest is the one to ask about.
    const Returned oldest = returned_.front();
    lock.unlock();
    const bool passed = progress_.reached(oldest.copied);
    lock.lock();
    if (passed && !returned_.empty() && returned_.front().buffer == oldest.buffer) {
      returned_.erase(returned_.begin());
      return oldest.buffer;
    }
  }
  buffers_.push_back(std::make_unique_for_overwrite<float[]>(elements_));
  return buffers_.back().get();
}

void Staging::give_back(float* buffer, Point copied) {
  const Lock lock(mutex_);
  returned_.push_back({buffer, copied});
}

Gauge Staging::memory() const {
  const Lock lock(mutex_);
  const Bytes bytes{buffers_.size() * elements_ * sizeof(float)};
  return {bytes, bytes};
}

}  // namespace weir
