#pragma once

// The simulated workloads for real: threads, a scheduler and a pool on the cpu device, whose
// kernels and copies take the workload's times. Memory is smaller by kScale.

#include <vector>

#include "bench/simulate/moments.hpp"
#include "bench/simulate/simulation.hpp"

namespace weir::simulate {

constexpr std::uint64_t kScale = 16;

struct RealOptions {
  Bytes budget{};               ///< before scaling
  std::uint64_t batches = 500;  ///< of all producers together
  std::uint64_t seed = 1;
};

struct RealResult {
  Time duration{};
  Bytes peak{};                        ///< reserved, times kScale
  Bytes held{};                        ///< the most at one time, times kScale
  std::vector<std::uint64_t> batches;  ///< begun by each producer
  std::uint64_t failed = 0;
  Time caused_idle{};
  JitterSamples samples{};  ///< wake-ups only of one producer
  RecordedDelays recorded{};
};

/// Whether the policy runs for real: those of weir's scheduler do.
[[nodiscard]] bool runs_for_real(const PolicyChoice& policy) noexcept;
/// Collectives are not run for real.
[[nodiscard]] bool runs_for_real(const Workload& workload) noexcept;

[[nodiscard]] RealResult run_for_real(const Workload& workload, const PolicyChoice& policy,
                                      const RealOptions& options);

}  // namespace weir::simulate
