#include "allocator/adapt/allocation.hpp"

#include <exception>
#include <string>
#include <utility>

#include "allocator/base/log.hpp"

namespace weir {

Allocation::Allocation(Pool& pool, Bytes bytes, StreamId stream, std::string_view label)
    : Allocation(pool, pool.allocate(bytes, stream, label), bytes, stream) {}

Allocation::Allocation(Pool& pool, void* data, Bytes bytes, StreamId stream) noexcept
    : pool_(&pool), data_(data), size_(data != nullptr ? bytes : Bytes{}), stream_(stream) {}

Allocation::Allocation(Allocation&& other) noexcept
    : pool_(other.pool_),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, {})),
      stream_(other.stream_) {}

Allocation& Allocation::operator=(Allocation&& other) noexcept {
  if (this == &other) return *this;
  reset();
  pool_ = other.pool_;
  data_ = std::exchange(other.data_, nullptr);
  size_ = std::exchange(other.size_, {});
  stream_ = other.stream_;
  return *this;
}

void Allocation::record_use(StreamId stream) {
  if (data_ != nullptr) pool_->record_use(data_, stream);
}

void Allocation::reset() noexcept {
  const Bytes size = size_;
  void* const data = release();
  if (data == nullptr) return;
  try {
    pool_->deallocate(data, stream_);
  } catch (const std::exception& error) {
    log(LogLevel::kError, "a block of " + format_bytes(size) + " is not freed: " + error.what());
  }
}

void* Allocation::release() noexcept {
  size_ = {};
  return std::exchange(data_, nullptr);
}

}  // namespace weir
