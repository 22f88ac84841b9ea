#pragma once

// From ticks of the recorder's clock to nanoseconds of the machine's monotonic clock.

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

/// A line from pair to pair. A later tick never gets an earlier time, and a tick always gets the
/// same time: slices that lie inside one another stay so. Not thread-safe.
class ClockMap {
 public:
  /// `ns_per_tick` is for ticks before `first`.
  ClockMap(ClockPair first, double ns_per_tick);

  /// Continues the line. Ignores a pair that is not later than the last one on both clocks.
  void add(ClockPair pair);
  /// The time of a tick. Ticks after the last pair get the time of that pair: add a pair first.
  [[nodiscard]] std::uint64_t ns(std::uint64_t ticks) const noexcept;
  /// Over all pairs.
  [[nodiscard]] double ns_per_tick() const noexcept;

  /// So many pairs are kept: a hundred minutes at ten a second. Earlier ticks are on the first line
  /// that is left.
  static constexpr std::size_t kMostPairs = std::size_t{1} << 16U;

 private:
  ClockPair first_;
  double first_rate_;
  std::vector<ClockPair> pairs_;
};

}  // namespace weir::timeline
