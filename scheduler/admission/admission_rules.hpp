#pragma once

// What admission knows and decides, without a lock, a thread or a clock: Admission adds those, and
// bench/simulate runs the same rules on simulated time. A data structure only; the user holds the
// lock and passes the time in.

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "allocator/base/time_after.hpp"
#include "allocator/statistics.hpp"
#include "scheduler/admission/admission_decision.hpp"
#include "scheduler/admission/fair_line.hpp"
#include "scheduler/admission/ledger.hpp"
#include "scheduler/admission/policy.hpp"
#include "scheduler/admission/run_ahead_control.hpp"

namespace weir {

/// The longest wait of one batch for open batches. It begins again whenever their number changes,
/// since a batch that closes may be the one that was waited for. Not thread-safe.
class OpenGrace {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// Begins the grace if `open`, the number of open batches, is not what it was at the last call.
  /// None may be open: the last one can close between the decision to wait and the wait.
  void observe(std::uint64_t open, Time now, std::chrono::nanoseconds grace) {
    if (open_ == open) return;
    open_ = open;
    end_ = time_after(now, grace);
  }

  /// Ends the grace; the next observe() begins another.
  void reset() { open_.reset(); }

  [[nodiscard]] Time end() const { return end_; }
  [[nodiscard]] bool over(Time now) const { return open_ && now >= end_; }

 private:
  std::optional<std::uint64_t> open_;  ///< open batches at the last call; none: not begun
  Time end_;
};

/// A batch that asks to start.
struct Applicant : FairLine::Place {
  BatchKind* kind = nullptr;
  std::optional<Bytes> hint{};
  bool grace_over = false;  ///< it has waited for open batches for the whole grace
  /// How long the run-ahead target alone has held it back.
  std::chrono::nanoseconds held_back{};
  bool waited_for_room = false;  ///< for memory, before its admission
  std::uint64_t yielded_to = 0;  ///< for whose turn it waits, or has waited last; 0: nobody's
  std::chrono::nanoseconds joined_at{};  ///< device time of all batches settled before it joined
  /// When what it was held back for ended; none: it was not held back, or that is not known.
  std::optional<std::chrono::steady_clock::time_point> released{};
};

class AdmissionRules {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit AdmissionRules(const RunAhead& run_ahead) noexcept : control_(run_ahead) {}

  /// Puts the batch into the line. The only function beside `admit` that may throw
  /// (std::bad_alloc).
  void join(Applicant& batch, std::string_view kind, const Producer& producer,
            const Pressure& pressure, std::uint32_t weight = 1);
  /// Returns who may be admitted next; null if nobody waits. Fair by bytes, but if enough device
  /// time is queued, time is scarce and bytes are not: then a waiter is passed over whose producer
  /// would have more of it queued, for its weight, than another waiter's with its batch. But not
  /// for longer than the device takes to run the share of all others.
  ///
  /// Settling changes who that is, and wakes nobody. A waiter that finds another one first must
  /// wake it.
  [[nodiscard]] FairLine::Place* first() const noexcept;
  /// Returns what the decision on the batch depends on.
  [[nodiscard]] AdmissionState state_of(const Applicant& batch, bool cancelled,
                                        const Pressure& pressure) const;
  [[nodiscard]] Decision decide(const AdmissionState& state) const noexcept {
    return weir::decide(state, control_.target(state.copy));
  }
  /// Returns for which producer's turn the batch waits if `decide` says kWaitShare.
  [[nodiscard]] std::uint64_t yields_to(const Applicant& batch) const noexcept;
  /// Opens the batch, which leaves the line.
  Ticket& admit(Applicant& batch, Bytes estimate, const Pressure& pressure, CallSite where = {},
                std::uint32_t number = 0);
  /// Call when the open batch has been submitted. `now` is when, and only batches that were held
  /// back need it. `passed`: how far the device is, also if that is not settled yet.
  void close(Ticket& ticket, const std::array<Point, kStreamRoles>& points, bool learn, Time now,
             const std::array<std::uint64_t, kStreamRoles>& passed = {});
  /// Settles every submitted batch whose points are passed.
  void settle(const std::array<std::uint64_t, kStreamRoles>& passed);

  [[nodiscard]] Ledger& ledger() noexcept { return ledger_; }
  [[nodiscard]] const Ledger& ledger() const noexcept { return ledger_; }
  [[nodiscard]] FairLine& line() noexcept { return line_; }
  [[nodiscard]] const FairLine& line() const noexcept { return line_; }
  [[nodiscard]] RunAheadControl& control() noexcept { return control_; }
  [[nodiscard]] const RunAheadControl& control() const noexcept { return control_; }

 private:
  using Queues = std::span<const Ledger::ProducerQueue>;

  /// Whether so much device time is queued that producers share it.
  [[nodiscard]] bool time_is_scarce() const noexcept;
  /// Returns what the copies of a waiting batch are expected to take at most. The queue must be as
  /// long when that batch's turn comes.
  [[nodiscard]] std::chrono::nanoseconds longest_copy() const noexcept;
  /// Returns the most device time that a waiter's producer may have queued with its batch, in
  /// nanoseconds over its weight, to go before others.
  [[nodiscard]] double most_queued(Queues queues) const noexcept;
  [[nodiscard]] double queued_with(const FairLine::Place& place, Queues queues) const noexcept;
  /// Whether the device has run so much since the batch joined that its share is a batch.
  [[nodiscard]] bool is_overdue(const Applicant& batch, std::uint64_t weights) const noexcept;
  /// Returns the bytes held that neither an open batch allocated nor the device alone can free.
  [[nodiscard]] Bytes live(const Pressure& pressure) const;
  [[nodiscard]] Bytes all_not_live(const Pressure& pressure) const;
  [[nodiscard]] Bytes estimate(const Applicant& batch, const Pressure& pressure) const;

  /// Returns the stream that the batches of late have kept busiest, of those that the batch uses.
  /// Not its own busiest: a batch with a long copy delays the computes, which matter.
  [[nodiscard]] std::size_t note_busiest(const Ticket& ticket) noexcept;
  /// Returns the part of the stream's idle time before the batch that may be ours: in which it
  /// waited for no other stream, or for tasks that could have ended earlier. None if the batch was
  /// ready before.
  [[nodiscard]] std::chrono::nanoseconds lost_gap(const Ticket& ticket, std::size_t role) noexcept;
  /// Returns when the device ran the batch.
  [[nodiscard]] RunBatch run_of(const Ticket& ticket) noexcept;

  Ledger ledger_;
  FairLine line_;
  RunAheadControl control_;
  std::chrono::nanoseconds ran_{};  ///< device time of all settled batches
  StreamTimes earlier_{};           ///< RunAheadControl::could_end_earlier
  StreamTimes busy_{};              ///< device time of the batches of late
  StreamTimes ended_{};             ///< of each stream's settled work, on the steady clock
};

}  // namespace weir
