#pragma once

/// @file
/// A pool's accounting at one moment. All bytes are of blocks, after rounding, except `requested`.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "allocator/base/bytes.hpp"
#include "allocator/base/pressure.hpp"

namespace weir {

/// A level and its peaks.
struct Gauge {
  Bytes current;          ///< now
  Bytes peak;             ///< the highest since the last reset
  Bytes peak_at_reset{};  ///< the highest before the last reset; zero: there was none

  /// Adds `bytes` and updates the peak.
  void add(Bytes bytes) noexcept {
    current += bytes;
    peak = std::max(peak, current);
  }
  /// Subtracts `bytes`, at most the current level.
  void remove(Bytes bytes) noexcept { current -= bytes; }
  /// Resets the peak to the current level.
  void reset_peak() noexcept {
    peak_at_reset = highest();
    peak = current;
  }
  /// Returns the highest level ever.
  [[nodiscard]] Bytes highest() const noexcept { return std::max(peak, peak_at_reset); }
};

/// In every snapshot allocated + awaiting + cached == reserved, and held == allocated + awaiting.
struct Statistics {
  Gauge requested;  ///< requested by the current holders
  Gauge allocated;  ///< handed out
  Gauge awaiting;   ///< freed, but not reusable: the device has not passed a use
  Gauge cached;     ///< every other free block
  Gauge reserved;   ///< obtained from the upstream
  Gauge held;       ///< allocated + awaiting: cannot be handed out now
  Bytes budget;     ///< the upper limit of `reserved`

  // The most there ever was when the pool grew, after it had asked streams how far they were.
  Bytes queued_at_growth{};  ///< awaiting, or cached for other streams alone: not passed
  Bytes needed_at_growth{};  ///< the same, and allocated

  std::uint64_t hits = 0;          ///< served by a cached block
  std::uint64_t misses = 0;        ///< served by growth
  std::uint64_t handovers = 0;     ///< served by another stream's block after a wait on the device
  std::uint64_t waits = 0;         ///< waits on the host for memory
  std::uint64_t retries = 0;       ///< requests started again after a wait on the host
  std::uint64_t releases = 0;      ///< segments returned to the upstream
  std::uint64_t mapped_pages = 0;  ///< pages mapped (paged)
  std::uint64_t unmapped_pages = 0;   ///< pages unmapped (paged)
  std::uint64_t failures = 0;         ///< requests that nothing could serve
  std::chrono::nanoseconds waited{};  ///< total time of `waits`
  PressureTimes pressure{};           ///< time at each level since the pool was made
};

/// All gauges of Statistics.
inline constexpr std::array kAllGauges{&Statistics::requested, &Statistics::allocated,
                                       &Statistics::awaiting,  &Statistics::cached,
                                       &Statistics::reserved,  &Statistics::held};

// The figures by which admission decides, of one pool or summed over several.

/// Thread-safe. Does not own the pools. See Pool for each function.
class MemoryStatistics {
 public:
  MemoryStatistics() = default;
  MemoryStatistics(const MemoryStatistics&) = delete;
  MemoryStatistics& operator=(const MemoryStatistics&) = delete;

  /// Returns 1 + the GPU's ordinal, or 0 for no GPU.
  [[nodiscard]] virtual std::uint16_t device() const noexcept = 0;
  /// Returns what admission decides on.
  [[nodiscard]] virtual Pressure pressure() const = 0;
  /// Returns all figures.
  [[nodiscard]] virtual Statistics statistics() const = 0;
  /// Returns the hard limit.
  [[nodiscard]] virtual Bytes budget() const = 0;
  /// Returns the `most` labels that hold the most, for people.
  [[nodiscard]] virtual std::string holders(std::size_t most) const = 0;
  /// Updates how far the device has come.
  virtual void poll() = 0;
  /// Tries to raise the hard limit to `budget`, if it comes from a source that may have more.
  /// Returns true if it is larger now. Waits for nobody. Call without a lock.
  virtual bool raise_budget_to(Bytes /*budget*/) noexcept { return false; }

 protected:
  ~MemoryStatistics() = default;
};

}  // namespace weir
