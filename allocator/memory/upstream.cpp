#include "allocator/memory/upstream.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <memory>

#include "allocator/memory/page_source_memfd.hpp"

namespace weir {
namespace {

constexpr Bytes padded(Bytes size) {
  return {(size.count + Upstream::kAlignment - 1) / Upstream::kAlignment * Upstream::kAlignment};
}

/// Pages that are only numbers, at addresses without memory: a replay maps millions of them.
/// Shares the capacity and addresses of a SimulatedUpstream. Never reserves an address or makes a
/// page twice. Does not detect mapping over a mapping.
class SimulatedPages final : public PageSource {
 public:
  /// Takes pages from `gauge` and addresses from `next_address`. Both outlive this.
  SimulatedPages(CapacityGauge& gauge, std::atomic<std::uint64_t>& next_address,
                 Bytes page_size) noexcept
      : gauge_(gauge), next_address_(next_address), page_size_(page_size) {}
  [[nodiscard]] Bytes page_size() const override { return page_size_; }
  [[nodiscard]] void* reserve(Bytes size) override;
  void unreserve(void* /*address*/, Bytes /*size*/) noexcept override {}
  [[nodiscard]] std::size_t create(std::span<Page> pages) override;
  void destroy(std::span<const Page> pages) noexcept override;
  [[nodiscard]] std::size_t map(std::span<const Mapping> mappings) noexcept override {
    return mappings.size();
  }
  [[nodiscard]] std::size_t unmap(std::span<const Mapping> mappings) noexcept override {
    return mappings.size();
  }

 private:
  CapacityGauge& gauge_;
  std::atomic<std::uint64_t>& next_address_;
  const Bytes page_size_;
  std::atomic<std::uint64_t> next_page_{1};
};

void* SimulatedPages::reserve(Bytes size) {
  // Addresses are never reused. They run out long before they would wrap.
  constexpr Bytes kAllAddresses{std::uint64_t{1} << 63U};
  const Bytes with_slack = size + page_size_;
  if (size.count == 0 || size > kAllAddresses ||
      next_address_.load(std::memory_order_relaxed) > (kAllAddresses - size).count) {
    return nullptr;
  }
  const std::uint64_t taken = next_address_.fetch_add(with_slack.count, std::memory_order_relaxed);
  const std::uint64_t aligned =
      (taken + page_size_.count - 1) / page_size_.count * page_size_.count;
  return reinterpret_cast<void*>(aligned);  // NOLINT(performance-no-int-to-ptr): an address only
}

std::size_t SimulatedPages::create(std::span<Page> pages) {
  const std::size_t made = gauge_.take_up_to(pages.size(), page_size_);
  const std::uint64_t first = next_page_.fetch_add(made, std::memory_order_relaxed);
  for (std::size_t i = 0; i < made; ++i) pages[i] = Page{first + i};
  return made;
}

void SimulatedPages::destroy(std::span<const Page> pages) noexcept {
  gauge_.withdraw(page_size_ * pages.size());
}

}  // namespace

bool CapacityGauge::take(Bytes size) noexcept {
  std::uint64_t used = used_.load(std::memory_order_relaxed);
  do {
    if (size > capacity_ || used > capacity_.count - size.count) return false;
  } while (!used_.compare_exchange_weak(used, used + size.count, std::memory_order_relaxed));
  return true;
}

std::size_t CapacityGauge::take_up_to(std::size_t count, Bytes size) noexcept {
  std::uint64_t used = used_.load(std::memory_order_relaxed);
  std::uint64_t taken = 0;
  do {
    taken = std::min<std::uint64_t>(count, minus_or_zero(capacity_, {used}).count / size.count);
  } while (
      !used_.compare_exchange_weak(used, used + taken * size.count, std::memory_order_relaxed));
  return taken;
}

PageSource* HostMemoryUpstream::pages() noexcept {
  return pages_.get([this] { return std::make_unique<MemfdPages>(gauge_); });
}

void* HostUpstream::allocate(Bytes size) {
  if (!gauge_.take(size)) return nullptr;
  void* pointer = std::aligned_alloc(kAlignment, padded(size).count);
  if (pointer == nullptr) gauge_.withdraw(size);
  return pointer;
}

void HostUpstream::deallocate(void* pointer, Bytes size) noexcept {
  std::free(pointer);
  gauge_.withdraw(size);
}

void* MappedUpstream::allocate(Bytes size) {
  if (!gauge_.take(size)) return nullptr;
  void* pointer =
      mmap(nullptr, size.count, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pointer != MAP_FAILED) return pointer;
  gauge_.withdraw(size);
  return nullptr;
}

void MappedUpstream::deallocate(void* pointer, Bytes size) noexcept {
  munmap(pointer, size.count);
  gauge_.withdraw(size);
}

void* SimulatedUpstream::allocate(Bytes size) {
  if (!gauge_.take(size)) return nullptr;
  const std::uint64_t address =
      next_address_.fetch_add(padded(size).count, std::memory_order_relaxed);
  return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr): an address only
}

void SimulatedUpstream::deallocate(void* /*pointer*/, Bytes size) noexcept {
  gauge_.withdraw(size);
}

PageSource* SimulatedUpstream::pages() noexcept {
  return pages_.get(
      [this] { return std::make_unique<SimulatedPages>(gauge_, next_address_, page_size_); });
}

}  // namespace weir
