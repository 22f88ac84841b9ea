#pragma once

// The simulated workloads for real: threads, a scheduler and a pool on the cpu device, whose
// kernels and copies take the workload's times. Memory is smaller by kScale. And what such a run
// records of its batches, and the jitter that follows from it (moments.cpp).

#include <atomic>
#include <chrono>
#include <cstdint>
#include <span>
#include <vector>

#include "bench/simulate/simulation.hpp"

namespace weir::simulate {

/// What a host and a device added to the times of a workload.
struct JitterSamples {
  std::vector<Time> wake_up;
  std::vector<Time> host;
  std::vector<Time> submit;
  std::vector<Time> copy;
  std::vector<Time> device;
  std::vector<Time> device_idle;

  void add(const JitterSamples& other);
  [[nodiscard]] Jitter distributions() const;
};

/// Times and sleeps of the calling thread so far.
struct Spent {
  Time wall{};  ///< since the epoch of the steady clock
  Time cpu{};
  std::int64_t sleeps = 0;
};
[[nodiscard]] Spent spent();

/// The host's time from `from` to `to`. Without waits if it `may_wait` and has slept: then waits
/// for a core do not count either, since they cannot be told from sleep.
[[nodiscard]] Time host_time(const Spent& from, const Spent& to, bool may_wait = true);

/// What a batch did, since the run began.
struct Moments {
  BatchShape shape{};
  BatchDelays delays{};
  Time copy_enqueued{};
  Time enqueued{};
  /// The call in which its thread slept longest; none if `woken` is zero.
  Time asleep{};
  Time slept_from{};
  Time woken{};  ///< its end
  Time own{};    ///< what it did itself, if that is counted in `delays`
  bool slept_once_to_begin = false;
  bool copy_is_handed_over = false;  ///< its copy waits on the device for memory
  bool work_is_handed_over = false;  ///< its compute does
  std::atomic<std::int64_t> copied{0};
  std::atomic<std::int64_t> computed{0};  ///< zero: it failed
};

/// Returns the jitter of a run from its batches, in any order, and sets the delays of each.
/// `for_device`: who slept has waited for the device, and no other producer.
[[nodiscard]] JitterSamples samples_of(std::span<Moments* const> batches, bool for_device);

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
