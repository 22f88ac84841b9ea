#pragma once

/// @file
/// The mechanism that applies the admission decision: it lines batches up, waits for the oldest
/// submitted work while the decision says so, and settles what the device is done with.
///
/// A wait here is for submitted device work, or for open batches and then bounded by the grace, or
/// for a turn behind somebody who waits for one of these. No lock is held meanwhile. Thread-safe.

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "allocator/base/mutex.hpp"
#include "allocator/memory_books.hpp"
#include "allocator/timeline/source.hpp"
#include "scheduler/admission/admission_decision.hpp"
#include "scheduler/admission/fair_line.hpp"
#include "scheduler/admission/ledger.hpp"
#include "scheduler/admission/policy.hpp"
#include "scheduler/device/stream.hpp"

namespace weir {

/// What one batch can be told.
struct BatchOptions {
  std::optional<Bytes> hint{};  ///< expected footprint, until a batch of the kind has ended
  std::stop_token stop{};  ///< ends waits for admission, and for the batch's memory, with Cancelled
};

/// Times that a frontend was held back, and their total.
struct Stalls {
  std::uint64_t count = 0;           ///< how often
  std::chrono::nanoseconds total{};  ///< how long in all, on the clock
};

/// What admission did so far: stalls by their reason, batches by where they are.
struct AdmissionStatistics {
  Stalls hard;                  ///< the budget
  Stalls soft;                  ///< the run-ahead target
  Stalls turn;                  ///< another producer's turn, also one that is still submitting
  Stalls grace;                 ///< an allocation waited for another open batch
  std::uint64_t forced = 0;     ///< batches admitted without room, after the grace
  std::uint64_t sleeps = 0;     ///< times that a thread slept in here, other than for the device
  std::uint64_t open = 0;       ///< begun and not closed, now
  std::uint64_t submitted = 0;  ///< closed, and the device not known to be done, now
  std::uint64_t settled = 0;    ///< done, in all
  std::uint64_t most_submitted = 0;  ///< the most batches that were in flight at once
  Bytes charged{};                   ///< to open and submitted batches, now
};

/// An allocation that nothing submitted can serve, and how long it may wait for other batches.
struct MemoryWait {
  TicketRef batch{};         ///< whose allocation it is; null: of work outside any batch
  Bytes block{};             ///< what it needs
  std::uint64_t looked = 0;  ///< Admission::given_back() from before it looked for memory
  Pressure books{};          ///< the pool's, from before that
  std::chrono::steady_clock::time_point deadline{};  ///< the end of its grace
  std::stop_token stop{};                            ///< ends the wait early
};

/// Where the work of batches runs, by the roles of its streams; one that no batch touches may be
/// no stream.
struct BatchStreams {
  Progress& progress;                        ///< of all of them
  std::array<StreamId, kStreamRoles> ids{};  ///< in the order of kAllRoles
};

/// Lines up, admits and settles the batches of one scheduler.
class Admission final : private TimelineSource {
 public:
  /// `memory` is what batches take from.
  Admission(MemoryBooks& memory, const BatchStreams& streams, Policy policy, RunAhead run_ahead,
            std::chrono::nanoseconds grace);
  ~Admission() override { leave(); }
  Admission(const Admission&) = delete;
  Admission& operator=(const Admission&) = delete;

  /// Opens a batch; under `throttled` it waits until the decision admits it. Throws Cancelled.
  [[nodiscard]] TicketRef open(std::string_view kind, const BatchOptions& options,
                               CallSite where = {});
  /// Records the points of every stream that the batch touched and hands its charge over to them.
  void close(TicketRef ref, bool learn) noexcept;

  void note_allocated(TicketRef ref, Bytes bytes);
  void note_freed(TicketRef ref, Bytes bytes, bool awaiting) noexcept;

  /// Memory was freed that no batch is charged for.
  void note_given_back() noexcept;
  /// How often memory was freed so far.
  [[nodiscard]] std::uint64_t given_back() const noexcept { return given_back_.load(); }

  /// Waits until memory is freed that may serve the allocation: true. False when it has to fail:
  /// no budget has room for it, all open batches stand in allocations and it is the youngest (at
  /// once), its deadline passed, or it was stopped.
  [[nodiscard]] bool await_memory(const MemoryWait& wait);
  [[nodiscard]] std::chrono::nanoseconds grace() const noexcept { return grace_; }

  /// Settles every batch whose points the device has passed, after its frees reached the pool.
  void settle();

  [[nodiscard]] AdmissionStatistics statistics() const;

 private:
  /// Which batch of the process it is, and where it was begun.
  struct BatchId {
    std::uint32_t number = 0;
    CallSite where;
  };

  // For timelines and live views.
  void add_figures(LiveFigures& figures) const override;
  void record_live(TimelineSink& sink) override;

  class InLine;
  struct Blocked;

  /// Held, but not by what an open batch allocated, nor by what comes free by the device alone.
  [[nodiscard]] Bytes live(const Pressure& pressure) const WEIR_REQUIRES(mutex_);
  [[nodiscard]] Bytes all_not_live(const Pressure& pressure) const WEIR_REQUIRES(mutex_);
  [[nodiscard]] static bool is_guess(const InLine& place);
  [[nodiscard]] Bytes estimate(const InLine& place, const Pressure& pressure) const
      WEIR_REQUIRES(mutex_);
  [[nodiscard]] AdmissionState state_of(const InLine& place, const Pressure& pressure) const
      WEIR_REQUIRES(mutex_);
  [[nodiscard]] std::optional<TicketRef> try_admit(InLine& place, const BatchId& id,
                                                   Decision& decision);
  [[nodiscard]] TicketRef begin(BatchKind& kind, Bytes estimate, const BatchId& id)
      WEIR_REQUIRES(mutex_);
  void wait_turn(InLine& place);
  void wait_for_open(InLine& place);
  void wait_for_device(const std::stop_token& stop);
  void wake_first() noexcept WEIR_REQUIRES(mutex_);
  void wake_who_waits_for_open(bool awaiting) noexcept WEIR_REQUIRES(mutex_);
  void wake_blocked(bool whole) noexcept WEIR_REQUIRES(mutex_);
  void fail_youngest() noexcept WEIR_REQUIRES(mutex_);
  void note_listeners() noexcept WEIR_REQUIRES(mutex_);
  bool sleep(Lock& lock, const bool& woken, const std::stop_token& stop) WEIR_REQUIRES(mutex_);
  bool sleep_for_room(Lock& lock, const bool& woken, const std::stop_token& stop,
                      std::chrono::steady_clock::time_point deadline, const Pressure& books)
      WEIR_REQUIRES(mutex_);
  [[nodiscard]] static std::condition_variable_any& own_sleep();
  void record_missing();
  /// Warns of a batch that was perhaps never closed, and keeps no memory for it. False: there is
  /// none.
  [[nodiscard]] bool let_forgotten_lapse();
  /// Keeps nothing for the open batches, which somebody has awaited for the whole grace, until they
  /// allocate again: the next one need not wait for them, too. What they are, for a message.
  [[nodiscard]] std::string let_promises_lapse() WEIR_REQUIRES(mutex_);
  void warn_if_no_room(const AdmissionState& state, std::string_view kind);
  void warn_of_force(const AdmissionState& state, std::string_view kind, const std::string& others);
  void count_stall(Decision reason, std::chrono::nanoseconds time);

  MemoryBooks& memory_;
  const BatchStreams streams_;
  const Policy policy_;
  const RunAhead run_ahead_;
  const std::chrono::nanoseconds grace_;

  mutable Mutex mutex_{LockRank::kAdmission};
  Ledger ledger_ WEIR_GUARDED_BY(mutex_);
  FairLine line_ WEIR_GUARDED_BY(mutex_);
  std::array<std::uint64_t, kStreamRoles> passed_ WEIR_GUARDED_BY(mutex_){};
  /// Who waits for open batches; the first in line, or was until a newcomer got before it.
  InLine* waits_for_open_ WEIR_GUARDED_BY(mutex_) = nullptr;
  /// Allocations in their grace, in the order of their coming.
  std::vector<BlockedAllocation*> blocked_ WEIR_GUARDED_BY(mutex_);
  AdmissionStatistics counts_ WEIR_GUARDED_BY(mutex_);
  /// Times that memory was freed: who looked before one of them looks again and does not sleep.
  std::atomic<std::uint64_t> given_back_{0};
  /// How many sleep who a free may help: see note_given_back.
  std::atomic<std::size_t> listeners_{0};
  /// Whether a submitted batch may lack a point; written under the lock. Hardly ever, so that
  /// settling need not look for it.
  std::atomic<bool> missing_points_{false};
  std::atomic<bool> warned_{false};
};

}  // namespace weir
