#include "tools/replay/subject/pool_subject.hpp"

#include <algorithm>
#include <utility>

namespace weir::replay {
namespace {

void count(DriverCalls& counts, std::size_t calls) noexcept {
  counts.calls.fetch_add(calls, std::memory_order_relaxed);
}

void tell_of(const DriverCalls& counts, const void* pointer, Bytes size, bool obtained) {
  if (!counts.tell) return;
  counts.tell(
      {.address = reinterpret_cast<std::uintptr_t>(pointer), .size = size, .obtained = obtained});
}

}  // namespace

class CountedUpstream::CountedPages final : public PageSource {
 public:
  CountedPages(PageSource& pages, DriverCalls& counts) : pages_(pages), counts_(counts) {}

  [[nodiscard]] Bytes page_size() const override { return pages_.page_size(); }
  [[nodiscard]] void* reserve(Bytes size) override {
    count(counts_, 1);
    return pages_.reserve(size);
  }
  void unreserve(void* address, Bytes size) noexcept override {
    count(counts_, 1);
    pages_.unreserve(address, size);
  }
  [[nodiscard]] std::size_t create(std::span<Page> pages) override {
    count(counts_, pages.size());
    return pages_.create(pages);
  }
  void destroy(std::span<const Page> pages) noexcept override {
    count(counts_, pages.size());
    pages_.destroy(pages);
  }
  [[nodiscard]] std::size_t map(std::span<const Mapping> mappings) noexcept override {
    const std::size_t done = pages_.map(mappings);
    counts_.mapped_pages.fetch_add(done, std::memory_order_relaxed);
    note(mappings, done, true);
    return done;
  }
  [[nodiscard]] std::size_t unmap(std::span<const Mapping> mappings) noexcept override {
    const std::size_t done = pages_.unmap(mappings);
    note(mappings, done, false);
    return done;
  }

 private:
  void note(std::span<const Mapping> mappings, std::size_t done, bool obtained) noexcept {
    count(counts_, mappings.size());
    if (!counts_.tell) return;
    for (const Mapping& mapping : mappings.first(done)) {
      tell_of(counts_, mapping.address, page_size(), obtained);
    }
  }

  PageSource& pages_;
  DriverCalls& counts_;
};

CountedUpstream::CountedUpstream(std::unique_ptr<Upstream> upstream)
    : upstream_(std::move(upstream)) {
  if (PageSource* const pages = upstream_->pages()) {
    pages_ = std::make_unique<CountedPages>(*pages, counts_);
  }
}

CountedUpstream::~CountedUpstream() = default;

PageSource* CountedUpstream::pages() noexcept { return pages_.get(); }

void* CountedUpstream::allocate(Bytes size) {
  count(counts_, 1);
  void* const pointer = upstream_->allocate(size);
  if (pointer != nullptr) tell_of(counts_, pointer, size, true);
  return pointer;
}

void CountedUpstream::deallocate(void* pointer, Bytes size) noexcept {
  count(counts_, 1);
  tell_of(counts_, pointer, size, false);
  upstream_->deallocate(pointer, size);
}

std::uint64_t ReplayProgress::passed_now() const noexcept {
  const std::uint64_t now = now_.load(std::memory_order_relaxed);
  return std::max(now > lag_ ? now - lag_ : 0, waited_for_.load(std::memory_order_relaxed));
}

Point ReplayProgress::record(StreamId stream) {
  return {.stream = stream, .sequence = now_.load(std::memory_order_relaxed)};
}

std::uint64_t ReplayProgress::passed(StreamId /*stream*/) { return passed_now(); }

bool ReplayProgress::wait(Point point, const WaitLimit& limit) {
  if (point.sequence <= passed_now()) return true;
  if (limit.over()) return false;
  waits_.fetch_add(1, std::memory_order_relaxed);
  std::uint64_t before = waited_for_.load();
  while (before < point.sequence && !waited_for_.compare_exchange_weak(before, point.sequence)) {
  }
  return true;
}

void ReplayProgress::make_wait(StreamId /*waiter*/, Point /*point*/) {}

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
