#include "allocator/base/error.hpp"
#include "allocator/base/setting.hpp"
#include "bench/peers/candidates.hpp"
#include "bench/peers/runtime.hpp"
#include "bench/stress/commands.hpp"
#include "tools/replay/subject/upstreams.hpp"

namespace weir::bench {
namespace {

/// Returns the names of all caching pools.
std::string kept_pools() {
  std::string names;
  for (const PoolKind kind : pool_kinds()) {
    if (kind == PoolKind::kUnpooled) continue;
    names += (names.empty() ? "" : ",") + std::string(to_string(kind));
    if (kind == PoolKind::kRound) names += ",round:28";
  }
  return names;
}

replay::UpstreamKind upstream_of(const std::string& text) {
  const replay::UpstreamKind kind = parse_name<replay::UpstreamKind>("--upstream", text);
  if (kind == replay::UpstreamKind::kCuda && peers_runtime() != nullptr) {
    refuse("--upstream", text, "simulated or host: this build has peers, which need the stand-in");
  }
  return kind;
}

Bytes parse_size(const std::string& text) {
  const auto size = parse_bytes(text);
  if (!size || *size < kLeastPattern || *size > gib(64)) {
    refuse("--size", text, "a size from 64MiB to 64GiB");
  }
  return *size;
}

std::uint64_t parse_pattern_seed(const std::string& text) {
  const auto seed = parse_whole(text);
  if (!seed) refuse("--seed", text, "a whole number");
  return *seed;
}

}  // namespace

Stress checked(const StressFlags& flags) {
  const replay::UpstreamKind kind = upstream_of(flags.upstream);
  const replay::MakeUpstream upstream = replay::upstreams_of(kind);
  Stress stress{
      .candidates =
          pool_candidates("--pool", flags.pools.empty() ? kept_pools() : flags.pools, upstream),
      .missing = {},
      .upstream = flags.upstream,
      .capacity = {},
      .patterns = {.most = parse_size(flags.size), .seed = parse_pattern_seed(flags.seed)}};
  stress.pools = stress.candidates.size();
  PeerCandidates peers = peer_candidates("--peer", flags.peers, kind, upstream);
  stress.candidates.insert(stress.candidates.end(), peers.candidates.begin(),
                           peers.candidates.end());
  stress.missing = std::move(peers.missing);
  stress.capacity = replay::default_capacity(kind, stress.patterns.most);
  stress.wide = flags.wide;
  // Real memory allows only one replay at a time.
  if (kind != replay::UpstreamKind::kSimulated) stress.threads = 1;
  return stress;
}

}  // namespace weir::bench
