#include "allocator/memory/page_source_simulated.hpp"

namespace weir {

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
  gauge_.give_back(page_size_ * pages.size());
}

}  // namespace weir
