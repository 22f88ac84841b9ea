#pragma once

// Balances the trees of blocks, which are treaps (Seidel and Aragon, Randomized Search Trees,
// Algorithmica 1996): no parent ranks below a child. The rank hashes the address, so blocks store
// none.

#include <cstdint>

#include "allocator/index/block.hpp"

namespace weir {

/// splitmix64's finalizer.
[[nodiscard]] inline std::uint64_t treap_rank(const Block& block) noexcept {
  std::uint64_t x = block.begin();
  x = (x ^ x >> 30U) * 0xBF58476D1CE4E5B9U;
  x = (x ^ x >> 27U) * 0x94D049BB133111EBU;
  return x ^ x >> 31U;
}

}  // namespace weir
