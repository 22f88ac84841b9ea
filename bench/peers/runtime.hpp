#pragma once

// The CUDA runtime that the peers run on, for what is to be measured beside them on equal terms.

#include <functional>
#include <memory>

#include "allocator/pool_options.hpp"
#include "tools/replay/subject/subject.hpp"

namespace weir::bench {

struct PeersRuntime {
  /// One of our pools, over a stream of this runtime's for each id and over addresses with no
  /// memory behind them. For one thread.
  std::unique_ptr<replay::Subject> (*make_pool)(const PoolOptions& options, Bytes capacity);
  /// Something that records an event on a stream of its own, as each free of a peer's does.
  std::function<void()> (*make_event_recorder)();
};

/// Null in a build that found no peer.
[[nodiscard]] const PeersRuntime* peers_runtime();

}  // namespace weir::bench
