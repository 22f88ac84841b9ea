#include "trainer/static/layout.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace weir {
namespace {

bool share_a_step(const Lifetime& a, const Lifetime& b) {
  return a.first <= b.last && b.first <= a.last;
}

/// Places tensors in this order, each at the lowest free offset.
Layout place(std::span<const Lifetime> tensors, std::span<const std::size_t> order,
             std::size_t alignment) {
  const auto aligned = [alignment](std::size_t at) {
    return (at + alignment - 1) / alignment * alignment;
  };
  Layout layout{.offsets = std::vector<std::size_t>(tensors.size()), .size = 0};
  std::vector<std::size_t> placed;  // by offset
  for (const std::size_t i : order) {
    std::size_t offset = 0;
    for (const std::size_t other : placed) {
      if (!share_a_step(tensors[i], tensors[other])) continue;
      if (offset + tensors[i].size <= layout.offsets[other]) break;  // fits before it
      offset = std::max(offset, aligned(layout.offsets[other] + tensors[other].size));
    }
    layout.offsets[i] = offset;
    layout.size = std::max(layout.size, offset + tensors[i].size);
    placed.insert(std::ranges::upper_bound(placed, offset, {},
                                           [&](std::size_t p) { return layout.offsets[p]; }),
                  i);
  }
  return layout;
}

}  // namespace

Layout plan_layout(std::span<const Lifetime> tensors, std::size_t alignment) {
  std::vector<std::size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return tensors[i].first; });
  Layout by_first_use = place(tensors, order, alignment);
  std::ranges::stable_sort(order, std::ranges::greater{},
                           [&](std::size_t i) { return tensors[i].size; });
  Layout by_size = place(tensors, order, alignment);
  return by_size.size <= by_first_use.size ? std::move(by_size) : std::move(by_first_use);
}

}  // namespace weir
