#pragma once

// Pure functions that decide when to record a fence over many streams. Each stream costs a driver
// call, so with more streams, more frees share one fence.

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace weir::preload {

/// Maximum points per fence, unless there are many streams.
inline constexpr std::uint32_t kPointsOfAFence = 32;
/// Up to this many streams are asked for a single point.
inline constexpr std::size_t kStreamsAskedAtOnce = 8;
/// Beyond that, one fence per this many points for each stream: a free then pays for few calls,
/// however many streams there are.
inline constexpr std::size_t kPointsOfAStream = 2;

/// Returns whether `points` justify asking `streams` streams. If not, a request may skip them if it
/// can get memory otherwise.
[[nodiscard]] constexpr bool pays(std::uint32_t points, std::size_t streams) noexcept {
  return streams <= kStreamsAskedAtOnce || points >= kPointsOfAStream * streams;
}

/// Returns after how many points a fence is recorded even if nobody asks.
[[nodiscard]] constexpr std::uint32_t points_of_a_fence(std::size_t streams) noexcept {
  return static_cast<std::uint32_t>(
      std::max<std::size_t>(kPointsOfAFence, kPointsOfAStream * streams));
}

}  // namespace weir::preload
