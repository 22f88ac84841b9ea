#pragma once

// Converts ticks of the recorder's clock to nanoseconds of the machine's monotonic clock.

#include <cstdint>
#include <vector>

#include "allocator/base/tick_clock.hpp"

namespace weir::timeline {

/// Both clocks at one moment.
struct ClockPair {
  std::uint64_t ticks = 0;
  std::uint64_t ns = 0;  ///< of CLOCK_MONOTONIC
};

/// Reads both clocks, some 50 ns apart.
[[nodiscard]] ClockPair read_clocks(const TickClock& clock) noexcept;

/// Interpolates between pairs. The map is monotonic, and a tick always has the same time, so nested
/// slices stay nested. Not thread-safe.
class ClockMap {
 public:
  /// `ns_per_tick` applies to ticks before `first`.
  ClockMap(ClockPair first, double ns_per_tick);

  /// Adds a pair. Ignores one that is not later than the last one on both clocks.
  void add(ClockPair pair);
  /// Returns the time of a tick. Ticks after the last pair get that pair's time, so add a pair
  /// first.
  [[nodiscard]] std::uint64_t ns(std::uint64_t ticks) const noexcept;
  /// The average over all pairs.
  [[nodiscard]] double ns_per_tick() const noexcept;

  /// The most pairs to keep: a hundred minutes at ten per second. Earlier ticks use the first
  /// remaining line.
  static constexpr std::size_t kMostPairs = std::size_t{1} << 16U;

 private:
  ClockPair first_;
  double first_rate_;
  std::vector<ClockPair> pairs_;
};

}  // namespace weir::timeline
