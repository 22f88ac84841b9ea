#pragma once

// Generates allocation patterns that are hard on an allocator from rules and a seed, as traces like
// those read from files. Pure.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tools/replay/read/trace.hpp"

namespace weir::bench {

struct PatternOptions {
  /// The limit of live requested bytes. A pattern comes close and never exceeds it. At least
  /// kLeastPattern.
  Bytes most = gib(1);
  std::uint64_t seed = 1;
};
inline constexpr Bytes kLeastPattern = mib(64);

struct Pattern {
  std::string name;
  std::string what;  ///< a short description
  replay::Trace (*make)(const PatternOptions& options);
};

/// Returns the single-threaded patterns, in the order of the tables. Each frees all that it
/// allocated.
[[nodiscard]] std::span<const Pattern> patterns();

/// Returns similar patterns for several threads at once, together within `options.most`: one trace
/// per thread, each on its own stream.
[[nodiscard]] std::vector<replay::Trace> thread_patterns(const PatternOptions& options,
                                                         unsigned threads);

}  // namespace weir::bench
