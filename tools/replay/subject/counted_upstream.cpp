#include "tools/replay/subject/counted_upstream.hpp"

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

}  // namespace weir::replay
