#include "trainer/data/staging.hpp"

#include <algorithm>
#include <string>

#include "allocator/base/calling_thread.hpp"
#include "allocator/base/error.hpp"

namespace weir {

StagingBuffers::~StagingBuffers() {
  for (const Buffer& buffer : all_) upstream_.deallocate(buffer.pointer, buffer.size);
}

StagingBuffers::Buffer StagingBuffers::allocate(Bytes size) {
  for (;;) {
    Buffer buffer = take_free(size);
    if (buffer.pointer != nullptr) return buffer;
    const std::uint64_t ended = releases_ended();
    buffer = grow(size);
    // Another thread may have freed one meanwhile.
    if (buffer.pointer == nullptr) buffer = take_free(size);
    if (buffer.pointer != nullptr) return buffer;
    if (!release_below({UINT64_MAX}) && !await_release(ended)) return {};
  }
}

void StagingBuffers::obtain(std::size_t count, Bytes size) {
  for (; count != 0; --count) {
    const Buffer buffer = grow(size);
    if (buffer.pointer == nullptr) return;
    deallocate(buffer);
  }
}

void StagingBuffers::deallocate(Buffer buffer) noexcept {
  const Lock lock(mutex_);
  free_.insert(std::ranges::upper_bound(free_, buffer.size, {}, &Buffer::size), buffer);
}

StagingBuffers::Buffer StagingBuffers::take_free(Bytes size) {
  const Lock lock(mutex_);
  const auto found = std::ranges::lower_bound(free_, size, {}, &Buffer::size);
  if (found == free_.end()) return {};
  const Buffer buffer = *found;
  free_.erase(found);
  return buffer;
}

StagingBuffers::Buffer StagingBuffers::grow(Bytes size) {
  const Buffer buffer{upstream_.allocate(size), size};
  try {
    const Lock lock(mutex_);
    ++upstream_calls_;
    if (buffer.pointer == nullptr) return buffer;
    free_.reserve(all_.size() + 1);  // first, so that every buffer in `all_` can be freed
    all_.push_back(buffer);
    reserved_.add(size);
    obtained_ += size;
  } catch (...) {
    upstream_.deallocate(buffer.pointer, size);
    throw;
  }
  return buffer;
}

bool StagingBuffers::release_below(Bytes size) {
  std::vector<Buffer> released;
  {
    const Lock lock(mutex_);
    const auto end = std::ranges::lower_bound(free_, size, {}, &Buffer::size);
    if (end == free_.begin()) return false;
    released.assign(free_.begin(), end);
    free_.erase(free_.begin(), end);
    for (const Buffer& buffer : released) {
      std::erase_if(all_, [&](const Buffer& b) { return b.pointer == buffer.pointer; });
      reserved_.remove(buffer.size);
    }
    ++releasing_;
  }
  for (const Buffer& buffer : released) upstream_.deallocate(buffer.pointer, buffer.size);
  {
    const Lock lock(mutex_);
    --releasing_;
    ++releases_ended_;
  }
  released_.notify_all();
  return true;
}

bool StagingBuffers::await_release(std::uint64_t ended) {
  const NoCancel no_cancel;
  Lock lock(mutex_);
  while (releasing_ != 0 && releases_ended_ == ended) released_.wait(lock);
  return releases_ended_ != ended;
}

std::uint64_t StagingBuffers::releases_ended() const {
  const Lock lock(mutex_);
  return releases_ended_;
}

Gauge StagingBuffers::reserved() const {
  const Lock lock(mutex_);
  return reserved_;
}

Bytes StagingBuffers::obtained() const {
  const Lock lock(mutex_);
  return obtained_;
}

std::uint64_t StagingBuffers::upstream_calls() const {
  const Lock lock(mutex_);
  return upstream_calls_;
}

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
