#pragma once

// When a fence that has to ask many streams is recorded: values in, decision out. Each stream costs
// a question to the driver, so the more there are, the more frees share the answers.

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace weir::preload {

/// So many points share a fence at most, unless there are many streams to ask.
inline constexpr std::uint32_t kPointsOfAFence = 32;
/// Up to so many streams are asked for a single point.
inline constexpr std::size_t kStreamsAskedAtOnce = 8;
/// Beyond, once there are so many points for each stream: a free pays for few questions then,
/// however many streams there are.
inline constexpr std::size_t kPointsOfAStream = 2;

/// Whether `points` pay for asking `streams` streams. Where not, a request may do without them if
/// memory can be had otherwise.
[[nodiscard]] constexpr bool pays(std::uint32_t points, std::size_t streams) noexcept {
  return streams <= kStreamsAskedAtOnce || points >= kPointsOfAStream * streams;
}

/// After how many points a fence is recorded though nobody asks for it.
[[nodiscard]] constexpr std::uint32_t points_of_a_fence(std::size_t streams) noexcept {
  return static_cast<std::uint32_t>(
      std::max<std::size_t>(kPointsOfAFence, kPointsOfAStream * streams));
}

}  // namespace weir::preload
