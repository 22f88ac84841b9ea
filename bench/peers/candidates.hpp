#pragma once

// The candidates of a replay: our pools and the peers, chosen by flags.

#include <string>
#include <string_view>
#include <vector>

#include "tools/replay/measure/measure.hpp"
#include "tools/replay/subject/upstreams.hpp"

namespace weir::bench {

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

/// Parses `simulated` or `host`, the upstreams for peers on the stand-in. Throws UsageError
/// otherwise.
[[nodiscard]] replay::UpstreamKind parse_peer_upstream(std::string_view flag,
                                                       std::string_view text);

}  // namespace weir::bench
