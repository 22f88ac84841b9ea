#pragma once

// The two commands.

#include <cstdint>
#include <string>
#include <vector>

#include "bench/stress/patterns.hpp"
#include "tools/replay/measure/measure.hpp"

namespace weir::bench {

/// What the flags choose.
struct Stress {
  std::vector<replay::Candidate> candidates;  ///< our pools first
  std::size_t pools = 0;                      ///< number of our pools
  std::vector<std::string> missing;           ///< missing peers, a line each
  std::string upstream;
  Bytes capacity;  ///< enough for every pattern
  PatternOptions patterns;
  unsigned threads = 2;  ///< number of parallel replays
  bool wide = false;     ///< tables with all columns
};

/// The number of threads in the row of thread_patterns.
inline constexpr unsigned kPatternThreads = 4;
inline constexpr const char* kThreadsText =
    "four threads of random blocks, a stream each; differs from run to run";

// Print their table and return the exit code: 1 if one of our pools did not fail cleanly.
int run_fragmentation(const Stress& stress);
int run_oom(const Stress& stress);

}  // namespace weir::bench
