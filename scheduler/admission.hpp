#pragma once

/// @file
/// The mechanism that applies the admission decision: it lines batches up, waits for the oldest
/// submitted work while the decision says so, and settles what the device is done with.
///
/// A wait here is for submitted device work, or for a turn behind somebody who waits for that, or
/// for an older open batch and then bounded by the grace. No lock is held meanwhile. Thread-safe.

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string_view>

#include "allocator/mutex.hpp"
#include "allocator/pool.hpp"
#include "scheduler/admission_decision.hpp"
#include "scheduler/fair_line.hpp"
#include "scheduler/ledger.hpp"
#include "scheduler/policy.hpp"
#include "scheduler/stream.hpp"

namespace weir {

/// What one batch can be told.
struct BatchOptions {
  std::optional<Bytes> hint{};  ///< expected footprint; what was learned of the kind otherwise
  std::stop_token stop{};       ///< ends the wait for admission with Cancelled
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
  Stalls turn;                  ///< another producer's turn
  Stalls grace;                 ///< an allocation of a younger open batch waited for an older one
  std::uint64_t open = 0;       ///< begun and not closed, now
  std::uint64_t submitted = 0;  ///< closed, and the device not known to be done, now
  std::uint64_t settled = 0;    ///< done, in all
  std::uint64_t most_submitted = 0;  ///< the most batches that were in flight at once
  Bytes charged{};                   ///< to open and submitted batches, now
};

/// Where the work of batches runs, by the roles of its streams; one that no batch touches may be
/// no stream.
struct BatchStreams {
  Progress& progress;                        ///< of all of them
  std::array<StreamId, kStreamRoles> ids{};  ///< in the order of kAllRoles
};

/// Lines up, admits and settles the batches of one scheduler.
class Admission {
 public:
  Admission(Pool& pool, const BatchStreams& streams, Policy policy, RunAhead run_ahead,
            std::chrono::nanoseconds grace);

  /// Opens a batch; under `throttled` it waits until the decision admits it. Throws Cancelled.
  [[nodiscard]] TicketRef open(std::string_view kind, const BatchOptions& options);
  /// Records the points of every stream that the batch touched and hands its charge over to them.
  void close(TicketRef ref, bool learn) noexcept;

  void note_allocated(TicketRef ref, Bytes bytes);
  void note_freed(TicketRef ref, Bytes bytes, bool awaiting) noexcept;
  [[nodiscard]] bool is_open(TicketRef ref) const;

  /// Waits for a batch older than `ref`'s (any batch, for work outside one) to close, or for memory
  /// to be freed meanwhile, at most until `deadline`. False: there is none, or the deadline passed.
  [[nodiscard]] bool await_older(TicketRef ref, std::chrono::steady_clock::time_point deadline);
  [[nodiscard]] std::chrono::nanoseconds grace() const noexcept { return grace_; }

  /// Settles every batch whose points the device has passed, after its frees reached the pool.
  void settle();

  [[nodiscard]] AdmissionStatistics statistics() const;

 private:
  class InLine;

  [[nodiscard]] Bytes estimate(const BatchKind& kind, const BatchOptions& options,
                               const Pressure& pressure) const WEIR_REQUIRES(mutex_);
  [[nodiscard]] std::optional<TicketRef> try_admit(std::string_view name,
                                                   const BatchOptions& options, InLine& place,
                                                   Decision& decision);
  [[nodiscard]] TicketRef begin(BatchKind& kind, Bytes estimate) WEIR_REQUIRES(mutex_);
  void wait_turn(const InLine& place, const std::stop_token& stop);
  void wait_for_device(const std::stop_token& stop);
  void record_missing();
  void warn_if_no_room(const AdmissionState& state, std::string_view kind);
  void count_stall(Decision reason, std::chrono::nanoseconds time);

  Pool& pool_;
  const BatchStreams streams_;
  const Policy policy_;
  const RunAhead run_ahead_;
  const std::chrono::nanoseconds grace_;

  mutable Mutex mutex_{LockRank::kAdmission};
  Ledger ledger_ WEIR_GUARDED_BY(mutex_);
  FairLine line_ WEIR_GUARDED_BY(mutex_);
  std::array<std::uint64_t, kStreamRoles> passed_ WEIR_GUARDED_BY(mutex_){};
  /// Batches closed and blocks freed: what lets an allocation in its grace look again.
  std::uint64_t given_back_ WEIR_GUARDED_BY(mutex_) = 0;
  std::uint64_t in_grace_ WEIR_GUARDED_BY(mutex_) = 0;
  AdmissionStatistics counts_ WEIR_GUARDED_BY(mutex_);
  std::condition_variable_any changed_;  ///< the line moved, or given_back_ grew
  /// Whether a submitted batch may lack a point; written under the lock. Hardly ever, so that
  /// settling need not look for it.
  std::atomic<bool> missing_points_{false};
  std::atomic<bool> warned_{false};
};

}  // namespace weir
