#pragma once

// The streams of a simulated device. Each runs its tasks in order. So the begin and the end of a
// task are computed when it is enqueued.

#include <algorithm>
#include <cstdint>
#include <deque>

#include "bench/simulate/jitter.hpp"
#include "bench/simulate/workload.hpp"

namespace weir::simulate {

/// A batch that was submitted.
struct Flight {
  std::uint64_t sequence = 0;  ///< from 1
  std::size_t producer = 0;
  BatchShape shape{};
  BatchDelays delays{};  ///< those that are known; the others are drawn
  Time copied{};         ///< end of its copy
  Time copy_after{};     ///< its copy begins no earlier: it writes to memory that was handed over
  Time copying{};        ///< what its copy took
  Time computing{};      ///< what its compute took
  Time begin{};          ///< of its compute
  Time computed{};       ///< end of its compute
  Time end{};            ///< with its collective
  Time gap{};            ///< the compute stream's idle time before it
  Time synchronizing{};  ///< part of the gap: it waited for a collective
  Time starting{};       ///< part of the gap: the stream took so long to begin it
  // For how long nothing had been enqueued:
  Time starved{};             ///< for computes, before its own
  Time copy_starved{};        ///< for copies, before its own
  Time collective_starved{};  ///< for collectives, before its own
  Bytes awaiting{};           ///< memory that comes free at its end
  Time soft{};                ///< sum of all waits for a limit on running ahead, at its admission
  Time hard{};                ///< sum of all waits for memory, until its last allocation
  bool waited_for_memory = false;  ///< before or after its admission
  void* ticket = nullptr;          ///< the gate's

  /// Whether all that its compute needed was there when the one before ended.
  [[nodiscard]] bool was_ready() const noexcept {
    return starved == Time{} && copied <= begin - gap;
  }
};

class Device {
 public:
  /// `jitter` must outlive it.
  Device(const Jitter& jitter, std::uint64_t seed) noexcept
      : jitter_(jitter), copy_random_(seed), random_(seed + 1) {}

  void copy(Time now, Flight& flight) noexcept {
    const Time late = flight.delays.copy ? *flight.delays.copy : jitter_.copy.draw(copy_random_);
    flight.copying = flight.shape.copy + late;
    flight.copy_starved = std::max(Time{}, now - copied_);
    flight.copied = copied_ = std::max({copied_, now, flight.copy_after}) + flight.copying;
  }
  /// Enqueues the batch behind its copy. The next batch's compute waits for its collective, which
  /// begins in the middle of its own compute.
  void compute(Time now, Flight& flight) {
    const Time ready = std::max({now, flight.copied, computed_, synchronized_});
    const bool is_idle = ready > std::max(computed_, synchronized_);
    const Distribution& delay = is_idle ? jitter_.device_idle : jitter_.device;
    flight.starting = flight.delays.device ? *flight.delays.device : delay.draw(random_);
    const Time begin = ready + flight.starting;
    flight.sequence = ++enqueued_;
    flight.begin = begin;
    flight.gap = begin - computed_;
    flight.synchronizing = std::max(Time{}, synchronized_ - computed_);
    flight.starved = std::max(Time{}, now - computed_);
    flight.computing = flight.shape.compute;
    flight.computed = computed_ = begin + flight.computing;
    if (flight.shape.collective > Time{}) {
      flight.collective_starved = std::max(Time{}, now - synchronized_);
      const Time middle = begin + flight.computing / 2;
      synchronized_ = std::max(synchronized_, middle) + flight.shape.collective;
    }
    flight.end = std::max(flight.computed, synchronized_);
    flights_.push_back(flight);
  }
  /// Batches that were not passed yet, oldest first.
  [[nodiscard]] std::deque<Flight>& flights() noexcept { return flights_; }
  [[nodiscard]] const std::deque<Flight>& flights() const noexcept { return flights_; }
  [[nodiscard]] std::uint64_t enqueued() const noexcept { return enqueued_; }
  [[nodiscard]] std::uint64_t passed() const noexcept { return enqueued_ - flights_.size(); }
  /// `sequence` must not be passed.
  [[nodiscard]] Flight& flight(std::uint64_t sequence) { return flights_[sequence - passed() - 1]; }

 private:
  const Jitter& jitter_;
  Random copy_random_;
  Random random_;
  std::deque<Flight> flights_;
  std::uint64_t enqueued_ = 0;
  Time copied_{};
  Time computed_{};
  Time synchronized_{};
};

}  // namespace weir::simulate
