#pragma once

// What programs here replay against: our pools and the peers, chosen by flags.

#include <string>
#include <string_view>
#include <vector>

#include "tools/replay/measure/measure.hpp"
#include "tools/replay/subject/upstreams.hpp"

namespace weir::bench {

/// Our pools, as `weir replay --pool` reads them, with a budget of all of the upstream.
[[nodiscard]] std::vector<replay::Candidate> pool_candidates(std::string_view flag,
                                                             std::string_view text,
                                                             const replay::MakeUpstream& upstream);

struct PeerCandidates {
  std::vector<replay::Candidate> candidates;
  std::vector<std::string> missing;  ///< a line each: what was asked for and is not there
};

/// `all`, `none`, or names with commas; UsageError for a name that is none of a peer that was
/// found. `all` leaves out those that cannot be put on an upstream of that kind, and says so.
[[nodiscard]] PeerCandidates peer_candidates(std::string_view flag, std::string_view text,
                                             replay::UpstreamKind kind,
                                             const replay::MakeUpstream& upstream);

/// `simulated` or `host`: what a peer on the stand-in can be put on. UsageError otherwise.
[[nodiscard]] replay::UpstreamKind parse_peer_upstream(std::string_view flag,
                                                       std::string_view text);

}  // namespace weir::bench
