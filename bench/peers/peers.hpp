#pragma once

// Other projects' allocators, as subjects of replays and peers of our pools, and the choice of both
// by flags. This tree contains none of their files: bench/peers/fetch downloads them, and a build
// without one reports that in one line.

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "allocator/pool_options.hpp"
#include "tools/replay/measure/measure.hpp"
#include "tools/replay/subject/pool_subject.hpp"
#include "tools/replay/subject/subject.hpp"
#include "tools/replay/subject/upstreams.hpp"

namespace weir::bench {

using replay::MakeUpstream;

struct Peer {
  std::string name;      ///< in tables: `rmm_pool`
  std::string settings;  ///< its configuration, in words
  /// Whether it can use an upstream of ours. If not, it uses the CUDA runtime's memory, which on
  /// the stand-in is addresses without memory.
  bool takes_upstream = true;
  /// Makes subjects on `upstream`. A subject that cannot start in its capacity refuses every
  /// request. Of peers that take no upstream, only one subject exists at a time: another thread
  /// that makes one waits.
  std::function<replay::MakeSubject(const MakeUpstream& upstream)> on;
};

struct Peers {
  std::vector<Peer> found;
  std::vector<std::string> missing;  ///< a line each
};

/// Returns the peers that this program was built with.
[[nodiscard]] Peers find_peers();

// One function per allocator: rmm_cuda.cpp, torch_cuda.cpp.
void add_rmm(Peers& peers);
void add_torch(Peers& peers);

/// Parses our pools like `weir replay --pool`. The budget is the whole upstream.
[[nodiscard]] std::vector<replay::Candidate> pool_candidates(std::string_view flag,
                                                             std::string_view text,
                                                             const replay::MakeUpstream& upstream);

struct PeerCandidates {
  std::vector<replay::Candidate> candidates;
  std::vector<std::string> missing;  ///< a line each: requested but not available
};

/// Parses `all`, `none`, or a comma-separated list. Throws UsageError for an unknown peer. `all`
/// skips and reports peers that cannot use an upstream of that kind.
[[nodiscard]] PeerCandidates peer_candidates(std::string_view flag, std::string_view text,
                                             replay::UpstreamKind kind,
                                             const replay::MakeUpstream& upstream);

/// The peers' CUDA runtime, for fair comparisons with them.
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
