#pragma once

// A discrete-event simulation of programs that train on one device: the real admission rules, no
// threads, no sleeps. A producer loads a batch, asks the gate, takes memory for its inputs,
// enqueues their copy, takes memory for its working set, enqueues the compute, frees both in stream
// order and begins anew.

#include <cstdint>
#include <optional>
#include <vector>

#include "bench/simulate/gate.hpp"
#include "bench/simulate/jitter.hpp"
#include "bench/simulate/workload.hpp"

namespace weir::simulate {

struct RunOptions {
  Bytes budget{};
  std::uint64_t batches = 5000;  ///< of all producers together
  std::uint64_t seed = 1;
  Jitter jitter{};
  /// Delays of the first batches of each producer, in place of drawn ones.
  RecordedDelays recorded{};
  /// Instead of the policy's, unless that is kNever.
  std::optional<HandOver> hand_over{};
  bool keep_series = false;   ///< keeps RunResult::series
  bool keep_flights = false;  ///< keeps RunResult::flights
};

/// A moment at which the used bytes changed.
struct Sample {
  Time time{};
  Bytes used{};
  std::uint64_t submitted = 0;  ///< batches
  Time target{};                ///< of the run-ahead, if the policy has one that adapts
};

/// Idle time of the compute stream by cause. A gap is only ours as far as it makes the device end
/// later than under free run-ahead (FreeRun).
struct Idle {
  Time warm_up{};   ///< before the first compute; in the first batches, if not the host's
  Time throttle{};  ///< for a limit on running ahead
  Time memory{};    ///< for memory, another producer's turn or share
  Time device{};    ///< for a collective, or from one task to the next
  Time host{};      ///< the rest

  [[nodiscard]] Time sum() const { return warm_up + throttle + memory + device + host; }
};

/// How long batches stood, before and in their allocations.
struct Stalls {
  std::uint64_t batches = 0;
  Time p50{};
  Time p95{};
  Time p99{};
  Time most{};
};

/// Result of one run.
struct RunResult {
  static constexpr std::uint64_t kWarmUp = 64;  ///< batches

  std::uint64_t batches = 0;    ///< computed
  std::uint64_t failed = 0;     ///< out of memory
  std::uint64_t too_large = 0;  ///< of all, those that need more than the budget
  Time duration{};              ///< until the device is done
  Time computed{};              ///< sum of compute times
  Bytes peak{};
  Bytes warm_peak{};  ///< in the second half, when the run-ahead target has fallen
  Bytes held_peak{};  ///< without working sets that are freed
  Bytes left{};       ///< used at the end
  Idle idle{};
  Time caused_idle{};                           ///< throttle-caused, warm-up included
  std::optional<RunAheadStatistics> control{};  ///< of weir's policies
  Stalls stalls{};
  double jain = 1;  ///< fairness over bytes of the producers
  std::vector<Sample> series{};
  std::vector<Flight> flights{};  ///< as they were enqueued

  /// Device time that was computed, over the duration.
  [[nodiscard]] double throughput() const;
};

/// Runs the workload. The same arguments give the same result.
[[nodiscard]] RunResult simulate(const Workload& workload, const PolicyChoice& policy,
                                 const RunOptions& options);

}  // namespace weir::simulate
