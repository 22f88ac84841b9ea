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

// By name, as in `patterns`.

[[nodiscard]] replay::Trace random_pattern(const PatternOptions& options);
[[nodiscard]] replay::Trace sawtooth_pattern(const PatternOptions& options);
[[nodiscard]] replay::Trace comb_pattern(const PatternOptions& options);
[[nodiscard]] replay::Trace growing_pattern(const PatternOptions& options);
[[nodiscard]] replay::Trace fixed_steps_pattern(const PatternOptions& options);
[[nodiscard]] replay::Trace varying_steps_pattern(const PatternOptions& options);
[[nodiscard]] replay::Trace streams_pattern(const PatternOptions& options);
[[nodiscard]] replay::Trace against_round_pattern(const PatternOptions& options);
[[nodiscard]] replay::Trace against_naive_pattern(const PatternOptions& options);
[[nodiscard]] replay::Trace against_best_fit_pattern(const PatternOptions& options);
[[nodiscard]] replay::Trace against_paged_pattern(const PatternOptions& options);

}  // namespace weir::bench
