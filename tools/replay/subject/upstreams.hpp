#pragma once

// The upstreams that traces are replayed on.

#include <string_view>

#include "allocator/base/names.hpp"
#include "tools/replay/subject/pool_subject.hpp"

namespace weir::replay {

enum class UpstreamKind {
  kSimulated,  ///< addresses only
  kHost,       ///< host memory, untouched
  kCuda,       ///< memory of the first GPU
};

[[nodiscard]] constexpr auto names_of(UpstreamKind /*of*/) noexcept {
  return name_table("simulated", "host", "cuda");
}

/// Returns a maker of upstreams of that kind. Throws UsageError with the reason if this machine has
/// no such memory.
[[nodiscard]] MakeUpstream upstreams_of(UpstreamKind kind);

/// Returns the default capacity of a device of that kind: for addresses, enough for any trace with
/// this peak; otherwise the available memory.
[[nodiscard]] Bytes default_capacity(UpstreamKind kind, Bytes peak);

// Implemented with or without CUDA. The functions above call it if there is a GPU.

[[nodiscard]] MakeUpstream cuda_upstreams();
[[nodiscard]] Bytes cuda_capacity();

}  // namespace weir::replay
