#pragma once

// Finds the blocks that hold the most memory for the longest time.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tools/timeline/analysis/counters.hpp"

namespace weir::timeline {

/// One block from its allocation to its free.
struct Lifetime {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  std::uint64_t requested = 0;
  Span span{};               ///< ends with the recording if the block is never freed
  bool freed = false;        ///< its free was recorded
  bool from_before = false;  ///< allocated before the recording began
  std::uint32_t name = 0;
  std::uint32_t site = 0;
  std::uint32_t batch = 0;
  std::uint32_t kind = 0;  ///< kind of the batch, an index into the process's names
};
/// Returns the `most` blocks of a pool with the largest product of bytes and time, by begin.
[[nodiscard]] std::vector<Lifetime> lifetimes(const Index& index, const PoolInfo& pool,
                                              std::size_t most);

}  // namespace weir::timeline
