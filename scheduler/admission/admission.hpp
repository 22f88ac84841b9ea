#pragma once

/// @file
/// Applies the admission decision: lines batches up, waits for the oldest submitted work when the
/// decision says so, and settles batches that the device has finished.
///
/// A wait is for submitted device work, for open batches (at most the grace), or for a turn behind
/// such a waiter. No lock is held while waiting. Thread-safe.

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "allocator/base/condition.hpp"
#include "allocator/base/mutex.hpp"
#include "allocator/budget_source.hpp"
#include "allocator/statistics.hpp"
#include "allocator/timeline/source.hpp"
#include "scheduler/admission/admission_decision.hpp"
#include "scheduler/admission/admission_rules.hpp"
#include "scheduler/admission/policy.hpp"
#include "scheduler/device/stream.hpp"
#include "scheduler/ledger/ledger.hpp"

namespace weir {

/// Options of one batch.
struct BatchOptions {
  std::optional<Bytes> hint{};  ///< expected footprint, until a batch of the kind has ended
  std::stop_token stop{};  ///< ends waits for admission, and for the batch's memory, with Cancelled
  /// The latest end of its waits for the device, after which admission ends with Cancelled.
  std::chrono::steady_clock::time_point until = std::chrono::steady_clock::time_point::max();
  /// The share of the calling thread's batches against other threads' that wait: of bytes, and of
  /// queued device time. 1 or more.
  std::uint32_t weight = 1;
};

/// How often and how long a frontend was held back.
struct Stalls {
  std::uint64_t count = 0;           ///< number of stalls
  std::chrono::nanoseconds total{};  ///< their total, on the clock

  /// Adds both.
  Stalls& operator+=(const Stalls& more) noexcept {
    count += more.count;
    total += more.total;
    return *this;
  }
};

/// Statistics of admission: stalls by reason, batches by state.
struct AdmissionStatistics {
  // A batch that waits for several reasons in turn has a stall for each.
  Stalls budget;                ///< for memory: before the batch, or in an allocation
  Stalls in_allocations;        ///< the part of `budget` that allocations have waited
  Stalls soft;                  ///< for the run-ahead target
  Stalls turn;                  ///< for another producer's turn, also one that is still submitting
  std::uint64_t stalled = 0;    ///< batches that waited for any of these
  std::uint64_t forced = 0;     ///< batches admitted without room, after the grace
  std::uint64_t sleeps = 0;     ///< sleeps in here, other than for the device
  std::uint64_t open = 0;       ///< begun and not closed, now
  std::uint64_t submitted = 0;  ///< closed and not known to be done, now
  std::uint64_t settled = 0;    ///< done, in total
  std::uint64_t most_submitted = 0;  ///< most batches in flight at once
  Bytes charged{};                   ///< charged now to open and submitted batches
  RunAheadStatistics run_ahead;      ///< the run-ahead target, and what it cost
};

/// An allocation that no submitted work can serve, and how long it may wait for other batches.
struct MemoryWait {
  TicketRef batch{};         ///< whose allocation it is; null: outside any batch
  Bytes block{};             ///< bytes that it needs
  std::uint64_t looked = 0;  ///< Admission::given_back() before the failed attempt
  Pressure pressure{};       ///< the pool's pressure before the failed attempt
  std::chrono::steady_clock::time_point deadline{};  ///< the end of its grace
  std::stop_token stop{};                            ///< ends the wait early
};

/// The streams that run batches, by role. A role that no batch uses may have no stream.
struct BatchStreams {
  Progress& progress;                        ///< of all streams
  std::array<StreamId, kStreamRoles> ids{};  ///< in the order of kAllRoles
};

/// Lines up, admits and settles the batches of one scheduler.
class Admission final : public BudgetUser, private TimelineSource {
 public:
  /// `memory` is what batches take from. A run-ahead that adapts begins with `first` batches.
  Admission(MemoryStatistics& memory, const BatchStreams& streams, Policy policy,
            RunAhead run_ahead, std::chrono::nanoseconds grace,
            std::uint64_t first = RunAheadLimit::kFirstBatches);
  ~Admission() override { leave(); }
  Admission(const Admission&) = delete;
  Admission& operator=(const Admission&) = delete;

  /// Opens a batch. Under `throttled`, waits until the decision admits it. Throws Cancelled.
  [[nodiscard]] TicketRef open(std::string_view kind, const BatchOptions& options,
                               CallSite where = {});
  /// Records a point on every stream that the batch used, and hands its charge over to them.
  void close(TicketRef ref, bool learn) noexcept;

  /// Returns the open batch that the calling thread has begun and that accepts operations; a null
  /// one if there is none.
  [[nodiscard]] Owner owner_here() const;

  /// `waits`: what the allocation has waited for memory.
  void note_allocated(TicketRef ref, Bytes bytes, const Stalls& waits = {});
  /// Call when an allocation has waited for memory and then failed.
  void note_waited(TicketRef ref, const Stalls& waits);
  void note_freed(TicketRef ref, Bytes bytes, bool awaiting) noexcept;

  /// Call after memory was freed that is charged to no batch.
  void note_given_back() noexcept;
  /// Returns how often memory was freed so far.
  [[nodiscard]] std::uint64_t given_back() const noexcept { return given_back_.load(); }

  /// Waits until freed memory may serve the allocation, and returns true. Returns false if it must
  /// fail: no budget can hold it; all open batches are blocked in allocations and it is the
  /// youngest (at once); its deadline passed; or it was stopped.
  [[nodiscard]] bool await_memory(const MemoryWait& wait);
  [[nodiscard]] std::chrono::nanoseconds grace() const noexcept { return grace_; }

  /// Call after the calling thread has waited for the device by itself.
  void note_synchronized();

  /// Settles every batch whose points the device has passed, after its frees reached the pool.
  void settle();

  /// No batch starts and no promise changes during the call. Memory that a batch has and does not
  /// free stays, so the limit may be below what is held, but not below what is committed.
  void limit_to_use(BudgetLimit& limit) noexcept override;

  [[nodiscard]] AdmissionStatistics statistics() const;
  /// Returns what the next batch of the kind is expected to hold; see Ledger::expected.
  [[nodiscard]] std::optional<Bytes> expected(std::string_view kind);

 private:
  // For timelines and live views.
  void add_figures(LiveFigures& figures) const override;
  void record_live(TimelineSink& sink) override;

  class InLine;
  struct Wait;
  struct Blocked;
  class Waking;
  using Points = AdmissionRules::Passed;
  using Clock = std::chrono::steady_clock;

  [[nodiscard]] AdmissionState state_of(const InLine& place, const Pressure& pressure) const
      WEIR_REQUIRES(mutex_);
  /// Settles what the device has `passed`, and decides on the batch.
  [[nodiscard]] std::optional<TicketRef> try_admit(InLine& place, const Points& passed,
                                                   Decision& decision);
  void wait_for_others(InLine& place);
  void wait_for_open(InLine& place);
  void wait_for_device(InLine& place, Decision decision);
  void wake_first(Waking& lock) noexcept WEIR_REQUIRES(mutex_);
  void wake_who_waits_for_open(Waking& lock, bool awaiting) noexcept WEIR_REQUIRES(mutex_);
  void wake_blocked(Waking& lock, bool whole) noexcept WEIR_REQUIRES(mutex_);
  void fail_youngest(Waking& lock) noexcept WEIR_REQUIRES(mutex_);
  void note_listeners() noexcept WEIR_REQUIRES(mutex_);
  bool sleep_for_room(Lock& lock, const bool& woken, const std::stop_token& stop,
                      std::chrono::steady_clock::time_point deadline, const Pressure& before)
      WEIR_REQUIRES(mutex_);
  [[nodiscard]] static const std::shared_ptr<Condition>& own_sleep();
  [[nodiscard]] Points passed_by_device() const;
  /// Returns how far the device is, after everything freed before that has reached the pool.
  [[nodiscard]] Points look_at_device();
  /// Settles every batch whose points are passed.
  void settle(const Points& passed) WEIR_REQUIRES(mutex_);
  void publish_counts() noexcept WEIR_REQUIRES(mutex_);
  void record_missing();
  /// Warns of a batch that was perhaps never closed, and stops reserving memory for it. Returns
  /// false if there is none.
  [[nodiscard]] bool let_forgotten_lapse();
  /// Returns what to tell of a batch that goes on without room, or before which live memory leaves
  /// none (the first time); as a rule nothing.
  [[nodiscard]] std::string warning_of(const AdmissionRules::Answer& answer,
                                       const InLine& place) noexcept WEIR_REQUIRES(mutex_);
  void count_waits(TicketRef ref, const Stalls& waits) WEIR_REQUIRES(mutex_);
  void count_stall(const InLine& place, const Wait& wait, Clock::time_point end);

  MemoryStatistics& memory_;
  const BatchStreams streams_;
  const Policy policy_;
  const std::chrono::nanoseconds grace_;

  mutable Mutex mutex_{LockRank::kAdmission};
  AdmissionRules rules_ WEIR_GUARDED_BY(mutex_);
  /// The batch that waits for open batches: first in line, or first until a newcomer overtook it.
  InLine* waits_for_open_ WEIR_GUARDED_BY(mutex_) = nullptr;
  /// Allocations in their grace, oldest first.
  std::vector<BlockedAllocation*> blocked_ WEIR_GUARDED_BY(mutex_);
  AdmissionStatistics counts_ WEIR_GUARDED_BY(mutex_);
  bool warned_ WEIR_GUARDED_BY(mutex_) = false;  ///< of a lack of room
  /// Counts frees: a waiter that looked before one of them looks again and does not sleep.
  std::atomic<std::uint64_t> given_back_{0};
  /// How many sleepers a free may help; see note_given_back.
  std::atomic<std::size_t> listeners_{0};
  /// Whether a submitted batch may lack a point. Written under the lock; almost never true, so
  /// settling usually skips the search.
  std::atomic<bool> missing_points_{false};
  // As of the last change under the lock.
  std::atomic<std::uint64_t> open_{0};
  std::atomic<std::uint64_t> submitted_{0};
};

}  // namespace weir
