#include "bench/peers/peers.hpp"

#include <algorithm>

#include "peers_found.hpp"
#include "tools/program/split.hpp"
#include "tools/replay/measure/pools.hpp"

namespace weir::bench {
namespace {

std::string names_of(const Peers& peers) {
  std::string names;
  for (const Peer& peer : peers.found) names += ", " + peer.name;
  for (const std::string& line : peers.missing) names += "; " + line;
  return names;
}

}  // namespace

// Those that this build does not have.
#ifdef WEIR_NO_RMM
void add_rmm(Peers& peers) { peers.missing.emplace_back("RMM: " WEIR_NO_RMM); }
#endif
#ifdef WEIR_NO_TORCH
void add_torch(Peers& peers) { peers.missing.emplace_back("PyTorch: " WEIR_NO_TORCH); }
#endif
#if defined(WEIR_NO_RMM) && defined(WEIR_NO_TORCH)
const PeersRuntime* peers_runtime() { return nullptr; }
#endif

Peers find_peers() {
  Peers peers;
  add_rmm(peers);
  add_torch(peers);
  return peers;
}

std::vector<replay::Candidate> pool_candidates(std::string_view flag, std::string_view text,
                                               const replay::MakeUpstream& upstream) {
  PoolOptions base;
  base.budget = {{.percent = 100}, std::string(flag)};
  std::vector<replay::Candidate> candidates;
  for (const replay::PoolChoice& choice : replay::parse_pool_choices(flag, text, base)) {
    candidates.push_back(replay::candidate_of(choice, upstream, 0));
  }
  return candidates;
}

PeerCandidates peer_candidates(std::string_view flag, std::string_view text,
                               replay::UpstreamKind kind, const replay::MakeUpstream& upstream) {
  PeerCandidates chosen;
  if (text == "none") return chosen;
  Peers peers = find_peers();
  const bool all = text == "all";
  const std::vector<std::string_view> words = split(text, ",");
  if (words.empty()) refuse(flag, text, "all, none" + names_of(peers));
  for (const std::string_view word : words) {
    if (all || std::ranges::any_of(peers.found, [&](const Peer& p) { return p.name == word; })) {
      continue;
    }
    refuse(flag, word, "all, none" + names_of(peers));
  }
  const bool on_addresses = kind == replay::UpstreamKind::kSimulated;
  for (const Peer& peer : peers.found) {
    if (!all && std::ranges::find(words, peer.name) == words.end()) continue;
    if (peer.takes_upstream || on_addresses) {
      chosen.candidates.push_back({peer.name, peer.on(upstream)});
    } else if (all) {
      chosen.missing.push_back(peer.name + ": has the runtime's addresses alone");
    } else {
      refuse(flag, peer.name, "what can be put on that upstream; it has the runtime's addresses");
    }
  }
  if (all) chosen.missing.insert(chosen.missing.end(), peers.missing.begin(), peers.missing.end());
  return chosen;
}

}  // namespace weir::bench
