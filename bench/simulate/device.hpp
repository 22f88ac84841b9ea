#pragma once

// A simulated device: its memory and its streams.

#include <algorithm>
#include <cstdint>
#include <deque>

#include "allocator/base/bytes.hpp"
#include "allocator/base/pressure.hpp"
#include "bench/simulate/jitter.hpp"
#include "bench/simulate/workload.hpp"
#include "scheduler/ledger/batch_run.hpp"

namespace weir::simulate {

/// A pool that never fragments. As in the real one, inputs come free when the device has passed
/// their batch, and a working set that was freed may be used again by its own stream at once, or be
/// handed over to the copy stream, which then waits for it.
class Memory {
 public:
  explicit Memory(Bytes budget) noexcept : budget_(budget) {}

  [[nodiscard]] Bytes budget() const noexcept { return budget_; }
  /// Bytes that anything still needs.
  [[nodiscard]] Bytes used() const noexcept { return used_with(work_); }
  [[nodiscard]] Bytes peak() const noexcept { return peak_; }
  void reset_peak() noexcept { peak_ = used(); }
  /// The most bytes that could not be handed out: without working sets that are freed.
  [[nodiscard]] Bytes held_peak() const noexcept { return held_peak_; }
  /// Returns what admission is told. A freed working set counts as cached, not as held.
  [[nodiscard]] Pressure pressure() const noexcept {
    return {.held = apart() + work_, .budget = budget_, .awaiting = awaiting_};
  }

  /// Inputs, or outputs that are kept. Returns false if they do not fit now.
  [[nodiscard]] bool take(Bytes bytes) noexcept {
    if (used() + bytes > budget_) return false;
    allocated_ += bytes;
    note_peak();
    return true;
  }
  /// Inputs that do not fit, in memory of freed working sets if that has room for all of them:
  /// their copy has to wait for all computes up to `last`. Returns false if it has not. As in
  /// weir's pools: pages that a stream still uses stay where they are, so a block cannot have both
  /// such pages and new ones.
  [[nodiscard]] bool take_over(Bytes bytes, std::uint64_t last) {
    if (used() + bytes <= budget_ || pending_.empty()) return false;
    if (bytes > minus_or_zero(cached(), work_)) return false;
    handed_.push_back({last, bytes});
    handed_bytes_ += bytes;
    allocated_ += bytes;
    note_peak();
    return true;
  }
  /// A working set. Returns false if it does not fit now.
  [[nodiscard]] bool take_work(Bytes bytes) noexcept {
    if (used_with(work_ + bytes) > budget_) return false;
    work_ += bytes;
    note_peak();
    return true;
  }
  /// Undoes `take`: nothing has used the memory.
  void drop(Bytes bytes) noexcept { allocated_ -= bytes; }

  /// The host frees what batch `sequence` has used; the device has not computed it yet.
  void free_behind(std::uint64_t sequence, Bytes inputs, Bytes work) {
    allocated_ -= inputs;
    awaiting_ += inputs;
    work_ -= work;
    while (!pending_.empty() && pending_.back().bytes <= work) pending_.pop_back();
    pending_.push_back({sequence, work});
  }
  /// As free_behind for outputs that were kept; `passed`: the device is done with them.
  void free_kept(Bytes bytes, bool passed) noexcept {
    allocated_ -= bytes;
    if (!passed) awaiting_ += bytes;
  }
  /// The device has computed batch `sequence`, behind which `bytes` awaited.
  void pass(std::uint64_t sequence, Bytes bytes) noexcept {
    awaiting_ -= bytes;
    while (!pending_.empty() && pending_.front().sequence <= sequence) pending_.pop_front();
    while (!handed_.empty() && handed_.front().sequence <= sequence) {
      handed_bytes_ -= handed_.front().bytes;
      handed_.pop_front();
    }
  }

 private:
  struct Pending {
    std::uint64_t sequence;
    Bytes bytes;
  };

  [[nodiscard]] Bytes apart() const noexcept { return allocated_ + awaiting_; }
  /// Returns the memory that the compute stream keeps for working sets: as much as the largest
  /// pending one, less what was handed over. A later working set needs its whole size.
  [[nodiscard]] Bytes cached() const noexcept {
    Bytes most;
    for (const Pending& pending : pending_) {
      const bool is_later = handed_.empty() || pending.sequence > handed_.back().sequence;
      most = std::max(most, is_later ? pending.bytes : minus_or_zero(pending.bytes, handed_bytes_));
      if (is_later) break;  // the others are smaller
    }
    return most;
  }
  [[nodiscard]] Bytes used_with(Bytes work) const noexcept {
    return apart() + std::max(work, cached());
  }
  void note_peak() noexcept {
    peak_ = std::max(peak_, used());
    held_peak_ = std::max(held_peak_, apart() + work_);
  }

  const Bytes budget_;
  Bytes allocated_{};  ///< inputs and kept outputs
  Bytes awaiting_{};
  Bytes work_{};
  std::deque<Pending> pending_;  ///< freed working sets; each is larger than all behind it
  std::deque<Pending> handed_;   ///< parts of pending working sets
  Bytes handed_bytes_{};
  Bytes peak_{};
  Bytes held_peak_{};
};

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

  /// What it did on each stream, but for the gaps of copies and collectives.
  [[nodiscard]] BatchRun run() const noexcept {
    const auto on = [](Time takes, Time ended, Time idle, Time nothing) {
      return StreamRun{.device_time = takes,
                       .gap = idle,
                       .starved = nothing,
                       .begun = ended - takes,
                       .ended = ended};
    };
    BatchRun run{};
    run.at(index_of(StreamRole::kCopyIn)) = on(copying, copied, {}, copy_starved);
    run.at(index_of(StreamRole::kCompute)) = on(computing, computed, gap, starved);
    run.at(index_of(StreamRole::kCompute2)) = on(shape.collective, end, {}, collective_starved);
    return run;
  }
  /// Whether all that its compute needed was there when the one before ended.
  [[nodiscard]] bool was_ready() const noexcept {
    return starved == Time{} && copied <= begin - gap;
  }
};

/// The streams. Each runs its tasks in order, so the begin and the end of a task are computed when
/// it is enqueued.
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
