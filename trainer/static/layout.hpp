#pragma once

// Places tensors that live only for a part of a batch in one arena.

#include <cstddef>
#include <span>
#include <vector>

namespace weir {

/// Of one tensor: its size, and the first and last step that uses it, both included.
struct Lifetime {
  std::size_t size = 0;
  std::size_t first = 0;
  std::size_t last = 0;
};

/// Where each tensor begins, in the order of the lifetimes, and the size of the whole.
struct Layout {
  std::vector<std::size_t> offsets;
  std::size_t size = 0;
};

/// Returns offsets, multiples of `alignment`, such that tensors alive in the same step do not
/// overlap. Sizes and offsets have one unit, the caller's. The largest tensor is placed first, each
/// at the lowest offset that is free (Pisarchyk and Lee 2020, "Efficient memory management for deep
/// neural net inference", greedy by size), or the same in the order of first use, if that is
/// smaller. `alignment` is at least 1.
[[nodiscard]] Layout plan_layout(std::span<const Lifetime> tensors, std::size_t alignment);

}  // namespace weir
