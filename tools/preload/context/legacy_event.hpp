#pragma once

// When a fence records an event on the legacy stream. Such an event waits for all blocking streams
// and they wait for it, so it would couple unrelated streams.

namespace weir::preload {

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
