#pragma once

/// @file
/// A pool's accounting at one moment. All bytes are of blocks, after rounding, except `requested`.

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "allocator/base/bytes.hpp"

namespace weir {

/// A level and the highest it has been since the peaks were last reset.
struct Gauge {
  Bytes current;  ///< now
  Bytes peak;     ///< the highest since the last reset

  /// Up by `bytes`; the peak follows.
  void add(Bytes bytes) noexcept {
    current += bytes;
    peak = std::max(peak, current);
  }
  /// Down by `bytes`, which must not be more than there is.
  void remove(Bytes bytes) noexcept { current -= bytes; }
  /// The peak starts again at the current level.
  void reset_peak() noexcept { peak = current; }
};

/// allocated + awaiting + cached == reserved, and held == allocated + awaiting, at every moment at
/// which a snapshot can be taken.
struct Statistics {
  Gauge requested;  ///< asked for by those who hold memory now
  Gauge allocated;  ///< handed out
  Gauge awaiting;   ///< freed, but a use that the device has not passed keeps every stream off it
  Gauge cached;     ///< every other free block
  Gauge reserved;   ///< obtained from the upstream
  Gauge held;       ///< allocated + awaiting: what cannot be handed out now
  Bytes budget;     ///< what reserved never exceeds

  std::uint64_t hits = 0;       ///< served by a cached block
  std::uint64_t misses = 0;     ///< served by growth
  std::uint64_t handovers = 0;  ///< served by another stream's block, behind a wait on the device
  std::uint64_t waits = 0;      ///< waits on the host for memory
  std::uint64_t retries = 0;    ///< times that a request started again after a wait on the host
  std::uint64_t releases = 0;   ///< segments given back to the upstream
  std::uint64_t mapped_pages = 0;     ///< pages put behind addresses (paged)
  std::uint64_t unmapped_pages = 0;   ///< pages taken from behind addresses (paged)
  std::uint64_t failures = 0;         ///< requests that nothing could serve
  std::chrono::nanoseconds waited{};  ///< total of those waits
};

}  // namespace weir
