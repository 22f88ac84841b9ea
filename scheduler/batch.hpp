#pragma once

/// @file
/// The scope of one batch: the frontend opens it, it is admitted once, and closes when its work is
/// submitted.

#include <atomic>
#include <stop_token>

#include "scheduler/ledger/ticket.hpp"

namespace weir {

class Scheduler;

/// Closes its batch at the end of the scope. An exception abandons the batch: its submitted work
/// still runs, and nothing is learned from it. A batch begun inside an open batch of the same
/// thread joins that one and closes nothing. Must not outlive its scheduler.
///
/// What the beginning thread submits is charged to the batch; other threads name it in `submit` and
/// `copy_in`. Any number of threads may do so at once, even while one closes it: a late operation
/// is refused (UsageError). The batch may be moved to another thread and closed there. While it is
/// moved, assigned to or destroyed, no other thread may use it.
class Batch {
 public:
  Batch() = default;
  /// Takes over the batch of `other`, which becomes closed.
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

  /// Closes now, if still open. Waits for the batch's closures that other threads are running, and
  /// under the policy `barrier` for all submitted work.
  void close() noexcept { end(true); }
  /// Closes as an exception would.
  void abandon() noexcept { end(false); }

  /// Whether it joined a batch that was already open.
  [[nodiscard]] bool joined() const noexcept { return joined_; }

 private:
  friend class Scheduler;
  Batch(Scheduler& scheduler, Owner owner, bool joined) noexcept;
  void end(bool learn) noexcept;

  std::atomic<Scheduler*> scheduler_ = nullptr;  ///< null once closed
  TicketRef ticket_;                             ///< the joined batch's if it joined one
  std::stop_token stop_;                         ///< ends waits for memory
  bool joined_ = false;
  int exceptions_ = 0;  ///< in flight when it was begun
};

}  // namespace weir
