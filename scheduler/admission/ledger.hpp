#pragma once

// What batches are charged, and what is learned from them. Each charge belongs to a ticket that is
// settled exactly once; the sum is zero when nothing runs. A data structure only: the user holds
// the lock and does the waiting.

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "allocator/base/bytes.hpp"
#include "allocator/base/error.hpp"
#include "allocator/progress/progress.hpp"
#include "scheduler/device/stream.hpp"

namespace weir {

struct Ticket;
class TimelineSink;

/// Device time of each stream.
using StreamTimes = std::array<std::chrono::nanoseconds, kStreamRoles>;

/// What is known of the batches of one kind.
///
/// The footprint is the most that the next batch is expected to hold at one time:
/// - A batch's peak is the most that it had allocated and not freed. Freed memory does not count
///   even if it awaits the device: submitted work frees it, and an allocation that needs it waits.
///   So a slow device does not make batches look larger.
/// - When the next batch of the kind settles, we also learn how much of the peak the batch gave
///   back. The rest is kept state: weights, an optimizer's moments, a cache.
/// - The footprint is the larger of the last peak and the decayed maximum given back. So state that
///   one batch creates counts once and is dropped with the next batch, while a cache that grows in
///   every batch is expected to grow again. Double buffers, which the next batch frees, count as
///   given back.
/// - Until a second batch has settled, kept state counts: it may be double buffers as well as
///   weights, and too low an estimate costs more than too high a one.
struct BatchKind {
  std::string name;
  std::optional<Bytes> footprint;   ///< see above; none before the first batch has settled
  std::optional<Bytes> given_back;  ///< decayed maximum; none before the second has settled
  StreamTimes device_time{};        ///< moving average; zero before the first batch has settled
  bool recent = false;              ///< Ledger::recent_ has it
  Ticket* last = nullptr;           ///< settled last; kept until the next one settles
};

/// One batch's charge.
struct Ticket {
  enum class State : std::uint8_t { kSettled, kOpen, kSubmitted };

  State state = State::kSettled;
  std::uint64_t serial = 0;  ///< never reused, so that stale references are detected
  std::uint32_t number = 0;  ///< of the batch in its process, for timelines
  /// The sinks that last recorded its opening and its closing.
  struct {
    const TimelineSink* admission = nullptr;
    const TimelineSink* close = nullptr;
  } told{};
  BatchKind* kind = nullptr;
  CallSite where;              ///< where it was begun
  std::uint64_t producer = 0;  ///< charged with the estimate in the line; 0: none
  Bytes estimate{};
  Bytes net{};                      ///< allocated by the batch and not freed since, by any thread
  Bytes peak{};                     ///< largest net while it was open
  Bytes awaiting{};                 ///< freed while it was open, with the device not done
  std::uint64_t closed = 0;         ///< its place in the closing order
  std::uint64_t closed_before = 0;  ///< batches closed when it was opened or last allocated
  /// When it was first found idle since then; see Ledger::take_forgotten.
  std::optional<std::chrono::steady_clock::time_point> found_idle{};
  bool learn = true;    ///< false for an abandoned batch: it teaches nothing about its kind
  bool lapsed = false;  ///< nothing is reserved for it until it allocates again
  /// Serial of the batch that accepts operations; 0: none. Used by the scheduler.
  std::atomic<std::uint64_t> accepts{0};
  int enqueuing = 0;  ///< its closures that run now; guarded by the scheduler's order lock
  std::array<bool, kStreamRoles> touched{};
  std::array<Point, kStreamRoles> points{};  ///< on the streams it used, once closed
  /// When what its admission was held back for ended; none: it was not held back, or has waited
  /// for memory since.
  std::optional<std::chrono::steady_clock::time_point> released{};
  std::chrono::nanoseconds credit{};  ///< RunAheadControl::note_held_back at its admission
  bool waited_for_memory = false;     ///< in its admission or in an allocation
  /// Nanoseconds on each stream, added by the device's threads.
  std::array<std::atomic<std::int64_t>, kStreamRoles> device_time{};
  /// Of the first task on each stream: TaskTime::gap, TaskTime::starved and when it began, in
  /// nanoseconds.
  std::array<std::atomic<std::int64_t>, kStreamRoles> gap{};
  std::array<std::atomic<std::int64_t>, kStreamRoles> starved{};
  std::array<std::atomic<std::int64_t>, kStreamRoles> begun{};
  /// When the last task on each stream ended so far. As `begun`, on the steady clock.
  std::array<std::atomic<std::int64_t>, kStreamRoles> ended{};

  /// Counts a task of the batch that the device has run. For the device's threads, one at a time
  /// for each role.
  void note_ran(StreamRole role, const TaskTime& time) noexcept;

  /// Whether the device has passed its points on all streams.
  [[nodiscard]] bool passed_all(
      const std::array<std::uint64_t, kStreamRoles>& passed) const noexcept {
    for (std::size_t role = 0; role < kStreamRoles; ++role) {
      if (touched.at(role) && points.at(role).sequence > passed.at(role)) return false;
    }
    return true;
  }
};

/// A batch that a recorder knows and that settled while nothing was recorded.
struct SettledUnheard {
  std::uint32_t number = 0;  ///< of the batch in its process
  const BatchKind* kind = nullptr;
  CallSite where;
  Bytes peak{};
  bool knew_close = false;  ///< the recorder knows that it was closed
};

/// A reference to a ticket that detects reuse.
struct TicketRef {
  Ticket* ticket = nullptr;
  std::uint64_t serial = 0;

  /// Whether its batch accepts operations.
  [[nodiscard]] bool accepts() const noexcept {
    return ticket != nullptr && ticket->accepts.load(std::memory_order_acquire) == serial;
  }
};

/// The batch charged for memory and work, and what ends a wait for memory.
struct Owner {
  TicketRef batch{};  ///< null outside batches
  std::stop_token stop{};
};

class Ledger {
 public:
  /// A point that could not be recorded yet; see `unrecorded`.
  static constexpr std::uint64_t kUnrecorded = UINT64_MAX;

  [[nodiscard]] BatchKind& kind(std::string_view name);

  /// Returns what a batch of this kind is expected to hold: the kind's footprint, else the hint,
  /// else that of the largest of the kKnownKinds that settled last, else nothing.
  static constexpr std::size_t kKnownKinds = 64;
  [[nodiscard]] std::optional<Bytes> expected(const BatchKind& kind,
                                              std::optional<Bytes> hint) const noexcept;

  Ticket& open(BatchKind& kind, Bytes estimate, CallSite where = {}, std::uint32_t number = 0);
  /// `waited`: the allocation had to wait for memory.
  void note_allocated(TicketRef ref, Bytes bytes, bool waited = false);
  /// The open batch has waited for memory in an allocation that then failed or was made.
  void note_waited(TicketRef ref);
  /// Its frontend has waited for the device by itself while the batch was open. So the time until
  /// it closes says nothing about how long delivering a batch takes.
  void note_synchronized(TicketRef ref);
  /// Also for a closed or settled batch: it did not keep this memory.
  void note_freed(TicketRef ref, Bytes bytes, bool awaiting);
  /// Marks the batch as submitted; `points` are those of the streams that it used. Its charge
  /// becomes what it left awaiting.
  void close(Ticket& ticket, const std::array<Point, kStreamRoles>& points, bool learn);
  /// Settles every submitted batch whose points are passed. Returns how many. Calls
  /// `done(const Ticket&)` for each of them, in closing order.
  template <typename Done>
  std::size_t settle(const std::array<std::uint64_t, kStreamRoles>& passed, const Done& done) {
    const std::size_t count = std::erase_if(submitted_, [&](Ticket* ticket) {
      if (!ticket->passed_all(passed)) return false;
      done(std::as_const(*ticket));
      settle(*ticket);
      return true;
    });
    settled_ += count;
    return count;
  }
  std::size_t settle(const std::array<std::uint64_t, kStreamRoles>& passed) {
    return settle(passed, [](const Ticket&) {});
  }

  [[nodiscard]] bool is_open(TicketRef ref) const noexcept;
  [[nodiscard]] Bytes charge(const Ticket& ticket) const noexcept;
  /// Returns the sum over all tickets. Memory that submitted batches left awaiting counts up to
  /// `awaiting`, the bytes that await the device now.
  [[nodiscard]] Bytes charged(Bytes awaiting = {UINT64_MAX}) const noexcept;
  [[nodiscard]] Bytes unspent() const noexcept;  ///< reserved for open batches, not allocated yet
  [[nodiscard]] std::uint64_t open_count() const noexcept { return open_.size(); }
  /// Whether memory is reserved for any open batch.
  [[nodiscard]] bool keeps_for_open() const noexcept;
  [[nodiscard]] const std::vector<Ticket*>& open_tickets() const noexcept { return open_; }
  [[nodiscard]] std::uint64_t submitted() const noexcept { return submitted_.size(); }
  /// In closing order.
  [[nodiscard]] const std::vector<Ticket*>& submitted_tickets() const noexcept {
    return submitted_;
  }
  /// Returns batches that settled while nothing was recorded, each once, for the recorder that
  /// knows them.
  [[nodiscard]] std::vector<SettledUnheard> take_settled_unheard();
  [[nodiscard]] Bytes allocated()
      const noexcept;  ///< by open batches and not freed: not live memory
  /// Returns the oldest open batch that was perhaps never closed, or null, and drops its
  /// reservation. Such a batch has allocated nothing while kManyBatches others were closed, nor for
  /// `patience` after an earlier call found that. The number alone is not enough: while one thread
  /// reads input or has no core, another can close hundreds of batches.
  static constexpr std::uint64_t kManyBatches = 16;
  [[nodiscard]] const Ticket* take_forgotten(std::chrono::steady_clock::time_point now,
                                             std::chrono::nanoseconds patience) noexcept;

  /// Returns for how long the submitted batches are expected to keep the device busy after the
  /// oldest, which runs: the time of the busiest stream. Not the sum over streams: a batch's copies
  /// overlap the batch before it, so many batches take as long as their busiest stream. A kind
  /// never settled counts as the longest known kind, or kUnknownTime if none is known, so that
  /// unknown work cannot queue up. Batches whose points are `passed` have run, also if they are not
  /// settled yet.
  static constexpr std::chrono::nanoseconds kUnknownTime = std::chrono::hours(1);
  [[nodiscard]] std::chrono::nanoseconds queued_behind(
      const std::array<std::uint64_t, kStreamRoles>& passed = {}) const noexcept;
  /// Returns the same together with the open batches, which will be queued. Without those whose
  /// reservation was dropped: they may never be closed.
  [[nodiscard]] std::chrono::nanoseconds queued_and_open() const noexcept;
  /// The expected device time of one producer's submitted batches, counted in the same way.
  struct ProducerQueue {
    std::uint64_t producer = 0;
    StreamTimes times{};
    std::chrono::nanoseconds queued{};
  };
  /// Returns those of all producers that have submitted batches, by number. Valid until the next
  /// call, which computes them anew.
  [[nodiscard]] std::span<const ProducerQueue> queues() const noexcept;
  /// Returns the expected device time of a batch of this kind.
  [[nodiscard]] std::chrono::nanoseconds expected_time(const BatchKind& kind) const noexcept;
  [[nodiscard]] std::uint64_t settled() const noexcept { return settled_; }
  /// Returns the point a held-back frontend waits for: not passed, and of the batch a quarter into
  /// the queue. With fewer than four submitted that is the oldest. With many, waking for each batch
  /// would cost more than it gains, and three quarters remain queued. Nothing if no such point is
  /// known.
  [[nodiscard]] std::optional<Point> point_to_await(
      const std::array<std::uint64_t, kStreamRoles>& passed) const noexcept;
  /// Returns when the submitted batch that ends with `point` has ended; none if it is settled.
  [[nodiscard]] std::optional<std::chrono::steady_clock::time_point> ended(
      const Point& point) const noexcept;
  /// Returns the roles for which some submitted batch lacks its point. note_recorded supplies one.
  [[nodiscard]] std::array<bool, kStreamRoles> unrecorded() const noexcept;
  /// `closed` is from before `point` was recorded: the point does not cover batches closed later.
  void note_recorded(StreamRole role, Point point, std::uint64_t closed) noexcept;
  [[nodiscard]] std::uint64_t closed() const noexcept { return closed_; }  ///< batches so far

 private:
  /// Returns the submitted tickets behind the first that is not passed.
  [[nodiscard]] std::span<Ticket* const> behind(
      const std::array<std::uint64_t, kStreamRoles>& passed) const noexcept;
  /// Of the tickets in both.
  [[nodiscard]] std::chrono::nanoseconds sum_of_times(
      std::span<Ticket* const> tickets, std::span<Ticket* const> more = {}) const noexcept;
  void settle(Ticket& ticket);
  void learn_from(Ticket& ticket);
  void note_recent(BatchKind& kind) noexcept;
  void keep_unheard(const Ticket& ticket) noexcept;
  [[nodiscard]] std::optional<Bytes> largest_known() const noexcept;
  [[nodiscard]] std::optional<StreamTimes> longest_known() const noexcept;

  std::map<std::string, std::unique_ptr<BatchKind>, std::less<>> kinds_;
  BatchKind* last_kind_ = nullptr;  ///< that `kind` has returned: as a rule the next one, too
  /// Kinds of the batches that settled last, each once. Some programs name a new kind in every few
  /// batches: what is known of all of them would be a long walk for each batch of a new one.
  std::array<BatchKind*, kKnownKinds> recent_{};
  std::size_t next_recent_ = 0;
  std::vector<std::unique_ptr<Ticket>> tickets_;  ///< owns the tickets; they are reused
  std::vector<Ticket*> free_;
  std::vector<Ticket*> open_;
  std::vector<Ticket*> submitted_;  ///< in closing order
  std::vector<SettledUnheard> settled_unheard_;
  mutable std::vector<ProducerQueue> queues_;  ///< what queues() has returned
  std::uint64_t serials_ = 0;
  std::uint64_t closed_ = 0;
  std::uint64_t settled_ = 0;
};

}  // namespace weir
