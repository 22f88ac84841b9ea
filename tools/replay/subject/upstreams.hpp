#pragma once

// Where the memory comes from that a trace is replayed on.

#include <string_view>

#include "tools/replay/subject/pool_subject.hpp"

namespace weir::replay {

enum class UpstreamKind {
  kSimulated,  ///< addresses alone
  kHost,       ///< the host's, which nothing touches
  kCuda,       ///< of the first GPU
};

/// `simulated`, `host` or `cuda`. UsageError otherwise, naming `name`.
[[nodiscard]] UpstreamKind parse_upstream(std::string_view name, std::string_view text);

/// What makes upstreams of that kind. UsageError where there is no such memory here, saying why.
[[nodiscard]] MakeUpstream upstreams_of(UpstreamKind kind);

/// What a device of that kind has: for addresses as much as no trace runs out of whose peak is
/// `peak`, otherwise what can be had here.
[[nodiscard]] Bytes default_capacity(UpstreamKind kind, Bytes peak);

// Of a build with CUDA, or without: what the above asks where a GPU answers.

[[nodiscard]] MakeUpstream cuda_upstreams();
[[nodiscard]] Bytes cuda_capacity();

}  // namespace weir::replay
