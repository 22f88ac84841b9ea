#pragma once

// The two tables, and what they are told.

#include <cstdint>
#include <string>
#include <vector>

#include "bench/stress/patterns.hpp"
#include "tools/replay/measure/measure.hpp"

namespace weir::bench {

/// As they were given.
struct StressFlags {
  std::string pools;
  std::string peers = "all";
  std::string upstream = "simulated";
  std::string size = "1GiB";
  std::string seed = "1";
};

/// What they ask for.
struct Stress {
  std::vector<replay::Candidate> candidates;  ///< our pools first
  std::size_t pools = 0;                      ///< how many of them are ours
  std::vector<std::string> missing;           ///< peers that are not there, a line each
  std::string upstream;
  Bytes capacity;  ///< room for everything
  PatternOptions patterns;
  unsigned threads = 2;  ///< that replay at one time
};

/// The row of thread_patterns.
inline constexpr unsigned kPatternThreads = 4;
inline constexpr const char* kThreadsText =
    "four threads of random blocks, a stream each; differs from run to run";

/// UsageError naming the flag, its value and what is allowed.
[[nodiscard]] Stress checked(const StressFlags& flags);

// Print their table. The exit code: 1 when a failure of one of our pools was not clean.
int run_fragmentation(const Stress& stress);
int run_oom(const Stress& stress);

}  // namespace weir::bench
