#include "tools/replay/subject/pool_subject.hpp"

#include <utility>

namespace weir::replay {

PoolSubject::PoolSubject(std::unique_ptr<Upstream> upstream, PoolOptions options, std::uint64_t lag)
    : progress_(lag),
      upstream_(std::move(upstream)),
      pool_(DeviceMemory{.upstream = upstream_, .progress = progress_}, std::move(options)) {}

void* PoolSubject::allocate(Bytes bytes, StreamId stream) {
  progress_.begin_operation();
  Attempt attempt;
  return pool_.try_allocate(bytes, stream, {}, attempt);
}

void PoolSubject::deallocate(void* pointer, Bytes /*bytes*/, StreamId stream) {
  progress_.begin_operation();
  (void)pool_.deallocate(pointer, stream);
}

void PoolSubject::record_use(void* pointer, StreamId stream) {
  progress_.begin_operation();
  pool_.record_use(pointer, stream);
}

Bytes PoolSubject::page_size() {
  const PageSource* const pages = upstream_.pages();
  return pages != nullptr ? pages->page_size() : mib(2);
}

Footprint PoolSubject::footprint() const {
  const Statistics statistics = pool_.statistics();
  return {.allocated = statistics.allocated.current,
          .reserved = statistics.reserved.current,
          .largest_free = pool_.largest_cached(),
          .driver_calls = upstream_.counts().calls.load(),
          .mapped_pages = upstream_.counts().mapped_pages.load(),
          .waits = progress_.waits()};
}

}  // namespace weir::replay
