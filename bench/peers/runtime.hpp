#pragma once

// The peers' CUDA runtime, for fair comparisons with them.

#include <functional>
#include <memory>

#include "allocator/pool_options.hpp"
#include "tools/replay/subject/subject.hpp"

namespace weir::bench {

struct PeersRuntime {
  /// Makes one of our pools on this runtime, with a stream for each id, and with addresses without
  /// memory. For one thread.
  std::unique_ptr<replay::Subject> (*make_pool)(const PoolOptions& options, Bytes capacity);
  /// Makes a function that records an event on its own stream, like each free of a peer.
  std::function<void()> (*make_event_recorder)();
};

/// Returns null in a build without peers.
[[nodiscard]] const PeersRuntime* peers_runtime();

}  // namespace weir::bench
