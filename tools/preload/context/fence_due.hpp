#pragma once

// Pure functions that decide when to record a fence over many streams, and with which events. Each
// stream costs a driver call, so with more streams, more frees share one fence. An event on the
// legacy stream waits for all blocking streams and they wait for it, so it would couple unrelated
// streams.

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

/// What is known once a fence has its events on the named streams.
struct BlockingStreams {
  bool busy = false;               ///< the legacy stream, so any blocking stream may be
  bool event_on_blocking = false;  ///< the fence has an event on a blocking stream
  bool streams_unknown = false;    ///< streams may exist whose creation we did not see
  bool nameless = false;           ///< streams without a name here, such as other threads' default
                                   ///< streams
};

/// Whether the fence needs an event on the legacy stream. A blocking stream waits for earlier work
/// of the legacy stream (from CUDA's documentation, unverified on a device), so an event on a
/// blocking stream covers that work. The legacy stream itself needs an event for unnamed streams,
/// or if no blocking stream has one. In the second case no blocking stream has work that the event
/// could delay.
[[nodiscard]] constexpr bool needs_legacy_event(const BlockingStreams& streams) noexcept {
  if (streams.nameless) return true;
  return streams.busy && (streams.streams_unknown || !streams.event_on_blocking);
}

}  // namespace weir::preload
