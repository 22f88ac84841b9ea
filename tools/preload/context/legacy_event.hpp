#pragma once

// When a fence takes an event on the legacy stream. Such an event waits for all blocking streams,
// and all of them wait for it: streams that have nothing to do with each other would.

namespace weir::preload {

/// What is known when a fence has its events on the streams that have names.
struct BlockingStreams {
  bool busy = false;               ///< the legacy stream, and so perhaps any blocking one
  bool event_on_blocking = false;  ///< a blocking stream has an event of the fence
  bool streams_unknown = false;    ///< there may be streams that nobody here saw being made
  bool nameless = false;           ///< others have no name here, as other threads' default streams
};

/// Whether the fence needs an event on the legacy stream. A blocking stream waits for what the
/// legacy stream was given before (from CUDA's documentation, unverified on a device): an event on
/// one is behind that. So the legacy stream needs an event for streams that have no name here, and
/// where no blocking stream has one. In the second case no blocking stream has work of its own that
/// the event could hold back.
[[nodiscard]] constexpr bool needs_legacy_event(const BlockingStreams& streams) noexcept {
  if (streams.nameless) return true;
  return streams.busy && (streams.streams_unknown || !streams.event_on_blocking);
}

}  // namespace weir::preload
