#pragma once

/// @file
/// The bytes that one rank sends for each call of a Communicator. Pure.

#include <cstdint>

#include "trainer/ranks/shards.hpp"

namespace weir {

/// Each rank adds up one share: it sends the other shares to their ranks, and its own sum to all.
/// With equal shares 2 (R − 1) / R of the data, the least possible: Patarasuk and Yuan, Bandwidth
/// optimal all-reduce algorithms for clusters of workstations (2009).
[[nodiscard]] constexpr std::uint64_t all_reduce_bytes(std::uint64_t floats, int rank,
                                                       int ranks) noexcept {
  const std::uint64_t share = shard_of(floats, rank, ranks).count;
  return sizeof(float) * (floats - share + static_cast<std::uint64_t>(ranks - 1) * share);
}

/// Each rank sends its floats to every other.
[[nodiscard]] constexpr std::uint64_t all_gather_bytes(std::uint64_t floats, int ranks) noexcept {
  return sizeof(float) * floats * static_cast<std::uint64_t>(ranks - 1);
}

/// Rank 0 sends all.
[[nodiscard]] constexpr std::uint64_t broadcast_bytes(std::uint64_t bytes, int rank,
                                                      int ranks) noexcept {
  return rank == 0 ? bytes * static_cast<std::uint64_t>(ranks - 1) : 0;
}

/// Ranks send to rank 0, which sends everything to each.
[[nodiscard]] constexpr std::uint64_t gather_all_bytes(std::uint64_t bytes, int rank,
                                                       int ranks) noexcept {
  const auto count = static_cast<std::uint64_t>(ranks);
  return rank == 0 ? bytes * count * (count - 1) : bytes;
}

}  // namespace weir
