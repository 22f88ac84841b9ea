#pragma once

// One run of a case under one limit: on simulated time, or for real on the cpu device.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "bench/run_ahead/cases.hpp"
#include "scheduler/admission/policy.hpp"
#include "scheduler/admission/run_ahead_limit.hpp"

namespace weir::run_ahead {

struct CaseRun {
  Time duration{};
  Time work{};   ///< sum of its batches' times on their busiest stream
  Bytes held{};  ///< most at one time, by batches among the last third
  Bytes peak{};  ///< of the whole run
  Time lost{};   ///< as the rules measured it

  [[nodiscard]] double speed() const {
    return static_cast<double>(work.count()) / static_cast<double>(duration.count());
  }
};

[[nodiscard]] inline Time work_of(const CaseBatch& batch) {
  return std::max({batch.copy, batch.first, batch.second});
}

/// Runs the real rules without threads; budget to spare. `off` is free run-ahead. A run-ahead that
/// adapts begins with `first` batches. The same arguments give the same result.
[[nodiscard]] CaseRun simulate_case(const std::vector<std::vector<CaseBatch>>& producers,
                                    const RunAhead& run_ahead, std::uint64_t seed,
                                    std::uint64_t first = RunAheadLimit::kFirstBatches);

/// Runs threads, a scheduler and a pool; the host and the device sleep. Run it with real-time
/// priority (`chrt -f 10`), so that other programs do not disturb it.
[[nodiscard]] CaseRun run_case(const std::vector<std::vector<CaseBatch>>& producers,
                               const RunAhead& run_ahead);

}  // namespace weir::run_ahead
