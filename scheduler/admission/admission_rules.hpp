#pragma once

// What admission knows and decides, without a lock, a thread or a clock: Admission adds those, and
// bench/simulate runs the same rules on simulated time. A data structure only; the user holds the
// lock and passes the time in.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "allocator/statistics.hpp"
#include "scheduler/admission/admission_decision.hpp"
#include "scheduler/admission/fair_line.hpp"
#include "scheduler/admission/free_run.hpp"
#include "scheduler/admission/policy.hpp"
#include "scheduler/admission/run_ahead_limit.hpp"
#include "scheduler/ledger/ledger.hpp"

namespace weir {

/// The longest wait of one batch for open batches: so long it may wait for the same oldest one.
/// Batches that come and go meanwhile, and waits for something else, do not lengthen it. Not
/// thread-safe.
class OpenGrace {
 public:
  using Duration = std::chrono::nanoseconds;

  /// Begins the grace if `oldest`, the serial of the oldest open batch for which memory is
  /// reserved, is not that of the last call. Zero: there is none.
  void observe(std::uint64_t oldest, Duration grace) noexcept {
    if (std::exchange(oldest_, oldest) != oldest) left_ = grace;
  }
  /// Call after the batch has waited so long for open batches.
  void note_waited(Duration time) noexcept { left_ -= std::min(left_, time); }

  [[nodiscard]] Duration left() const noexcept { return left_; }
  [[nodiscard]] bool over() const noexcept { return oldest_ && left_.count() == 0; }

 private:
  std::optional<std::uint64_t> oldest_;  ///< of the last call; none: not begun
  Duration left_{};
};

/// A batch that asks to start.
struct Applicant : FairLine::Place {
  BatchKind* kind = nullptr;
  std::optional<Bytes> hint{};
  std::uint32_t weight = 1;  ///< BatchOptions::weight
  bool grace_over = false;   ///< it has waited for open batches for the whole grace
  /// How long the run-ahead target and its turn alone have held it back.
  std::chrono::nanoseconds held_back{};
  bool waited_for_room = false;  ///< for memory, before its admission

  /// Call when it has waited as `decision` said, for so long.
  void note_waited(Decision decision, std::chrono::nanoseconds wait) noexcept {
    if (decision == Decision::kWaitSoft || decision == Decision::kWaitShare) held_back += wait;
    if (decision == Decision::kWaitHard || decision == Decision::kWaitOpen) waited_for_room = true;
  }
};

class AdmissionRules {
 public:
  using Passed = std::array<std::uint64_t, kStreamRoles>;

  /// See RunAheadLimit.
  explicit AdmissionRules(const RunAhead& run_ahead,
                          std::uint64_t first = RunAheadLimit::kFirstBatches) noexcept
      : limit_(run_ahead, first) {}

  // `apply`, `line_up`, `ask`, `admit` and `open_unheld` may throw std::bad_alloc; no other
  // function does.

  /// Call first. The kind is in use until the batch is admitted or leaves.
  void apply(Applicant& batch, std::string_view kind, std::uint64_t producer);
  /// Puts the batch into the line, unless it is there.
  void line_up(Applicant& batch, const Pressure& pressure);
  /// What is decided on a batch, and on what.
  struct Answer {
    Decision decision = Decision::kAdmit;
    AdmissionState state;
  };
  /// Decides on the batch. It lines up unless it is admitted at once: while nobody waits, it passes
  /// nobody.
  [[nodiscard]] Answer ask(Applicant& batch, bool cancelled, const Pressure& pressure);
  /// Removes the batch, in the line or not; it is not charged.
  void leave(Applicant& batch) noexcept;
  /// Returns who may be admitted next; null if nobody waits.
  [[nodiscard]] Applicant* first() const noexcept { return static_cast<Applicant*>(line_.first()); }
  /// Returns what the decision on the batch depends on.
  [[nodiscard]] AdmissionState state_of(const Applicant& batch, bool cancelled,
                                        const Pressure& pressure) const noexcept;
  [[nodiscard]] Decision decide(const AdmissionState& state) const noexcept {
    return weir::decide(state, limit_.target(state.copy));
  }
  /// Returns how long the batch waits if that is kWaitShare.
  [[nodiscard]] std::chrono::nanoseconds patience(const AdmissionState& state) const noexcept {
    return weir::patience(state, limit_.target(state.copy));
  }
  /// Returns the point whose passing may let the batch go on, of a batch that waits for the device.
  [[nodiscard]] std::optional<Point> point_to_await(const Applicant& batch,
                                                    Decision decision) const noexcept;
  /// Call before the batch waits because of kWaitShare.
  void give_way(Applicant& batch) const noexcept { line_.give_way(batch); }
  /// Opens the batch, which leaves the line if it is there.
  Ticket& admit(Applicant& batch, Bytes estimate, const Pressure& pressure, CallSite where = {},
                std::uint32_t number = 0);
  /// Opens a batch that never was in the line.
  Ticket& open_unheld(std::string_view kind, CallSite where, std::uint32_t number);
  /// Call when the open batch has been submitted and has its points. `passed`: how far the device
  /// is, whose work is then no longer queued.
  void close(Ticket& ticket, bool learn, const Passed& passed);
  /// Settles every submitted batch whose points are passed.
  void settle(const Passed& passed);
  /// Call before a batch is forced in. Reserves nothing for the open batches, which outlasted a
  /// whole grace, until they allocate again: the next waiter need not wait for them too.
  void lapse_promises() noexcept {
    for (Ticket* ticket : ledger_.open_tickets()) ledger_.lapse(*ticket);
  }
  /// Call after a batch, or work outside batches, has waited for memory.
  void note_waited_for_memory(TicketRef ref = {}) noexcept {
    ledger_.note_waited(ref);
    free_run_.note_synchronized();
    limit_.note_drained();
  }
  /// Call after `thread` has waited for the device by itself, and what is done was settled. It has
  /// waited for something else, and a free run would be as far ahead as before, where batches are
  /// still submitted or the last one was not its own.
  void note_synchronized(std::uint64_t thread = 0) noexcept {
    if (ledger_.submitted() == 0 && thread == last_closed_by_) note_waited_for_memory();
  }

  [[nodiscard]] Ledger& ledger() noexcept { return ledger_; }
  [[nodiscard]] const Ledger& ledger() const noexcept { return ledger_; }
  [[nodiscard]] RunAheadStatistics run_ahead() const noexcept {
    return limit_.statistics(free_run_.lost());
  }

 private:
  /// Returns the bytes held that neither an open batch allocated nor the device alone can free.
  [[nodiscard]] Bytes live(const Pressure& pressure) const noexcept;
  [[nodiscard]] Bytes all_not_live(const Pressure& pressure) const noexcept;
  [[nodiscard]] std::chrono::nanoseconds copy_of(const BatchKind& kind) const noexcept {
    return ledger_.expected_times(kind).at(index_of(StreamRole::kCopyIn));
  }
  [[nodiscard]] Bytes estimate(const Applicant& batch, const Pressure& pressure) const noexcept;

  Ledger ledger_;
  FairLine line_;
  FreeRun free_run_;
  RunAheadLimit limit_;
  std::uint64_t last_closed_by_ = 0;  ///< the thread that began the batch closed last
};

}  // namespace weir
