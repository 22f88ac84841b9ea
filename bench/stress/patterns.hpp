#pragma once

// Patterns of allocations that are hard on an allocator, made by rule and seed: traces as they are
// read from files, for the stress benchmarks. Pure.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tools/replay/read/trace.hpp"

namespace weir::bench {

struct PatternOptions {
  /// The most bytes that are live at one time, by what is asked for; a pattern comes near it and
  /// never above. From kLeastPattern on.
  Bytes most = gib(1);
  std::uint64_t seed = 1;
};
inline constexpr Bytes kLeastPattern = mib(64);

struct Pattern {
  std::string name;
  std::string what;  ///< in a few words
  replay::Trace (*make)(const PatternOptions& options);
};

/// Every pattern of one thread, in the order of the tables. Each frees all that it allocated.
[[nodiscard]] std::span<const Pattern> patterns();

/// The same sort of thing for several threads at once, together at most `options.most`: each trace
/// is a thread's, on a stream of its own.
[[nodiscard]] std::vector<replay::Trace> thread_patterns(const PatternOptions& options,
                                                         unsigned threads);

// By name, as `patterns` has them.

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
