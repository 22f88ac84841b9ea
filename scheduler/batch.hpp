#pragma once

/// @file
/// The scope of one batch: opened by the frontend, admitted once, closed when its work is
/// submitted.

#include <atomic>
#include <stop_token>

#include "scheduler/admission/ledger.hpp"

namespace weir {

class Scheduler;

/// Closes its batch at the end of the scope. A batch left by an exception is abandoned: what it
/// submitted still runs, and nothing is learned from it. Begun inside an open batch of the same
/// thread it joins that one and closes nothing. Must not outlive its scheduler.
///
/// What the thread that began it submits is charged to it; other threads name it in `submit` and
/// `copy_in`. Any number of threads may do so at once, also while one closes it: an operation that
/// comes too late is refused (UsageError). It may be moved to another thread and closed there. A
/// Batch that is moved, assigned to or destroyed may not be in use by another thread meanwhile.
class Batch {
 public:
  Batch() = default;
  /// `other` is closed by it, and its batch goes on here.
  Batch(Batch&& other) noexcept
      : scheduler_(other.scheduler_.exchange(nullptr)),
        ticket_(other.ticket_),
        stop_(other.stop_),
        joined_(other.joined_),
        exceptions_(other.exceptions_) {}
  /// Closes its own batch first.
  Batch& operator=(Batch&& other) noexcept;
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;
  ~Batch();

  /// Closes now; does nothing when closed before. Waits for closures of its operations that other
  /// threads run at this moment, and under the policy `barrier` for all submitted work.
  void close() noexcept { end(true); }
  /// Closes as a batch that an exception ends.
  void abandon() noexcept { end(false); }

  /// Whether it joined a batch that was open already.
  [[nodiscard]] bool joined() const noexcept { return joined_; }

 private:
  friend class Scheduler;
  Batch(Scheduler& scheduler, Owner owner, bool joined) noexcept;
  void end(bool learn) noexcept;

  std::atomic<Scheduler*> scheduler_ = nullptr;  ///< null once closed
  TicketRef ticket_;                             ///< another's where it joined that
  std::stop_token stop_;                         ///< ends waits for memory
  bool joined_ = false;
  int exceptions_ = 0;  ///< under way when it was begun
};

}  // namespace weir
