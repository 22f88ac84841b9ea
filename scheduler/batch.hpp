#pragma once

/// @file
/// The scope of one batch: opened by the frontend, admitted once, closed when its work is
/// submitted.

#include <utility>

#include "scheduler/ledger.hpp"

namespace weir {

class Scheduler;

/// Closes its batch at the end of the scope. A batch left by an exception is abandoned: what it
/// submitted still runs, and nothing is learned from it. Begun inside an open batch of the same
/// thread it joins that one and closes nothing. Used and closed on the thread that began it.
/// Must not outlive its scheduler.
class Batch {
 public:
  Batch() = default;
  /// `other` is closed by it, and its batch goes on here.
  Batch(Batch&& other) noexcept
      : scheduler_(std::exchange(other.scheduler_, nullptr)),
        ticket_(other.ticket_),
        exceptions_(other.exceptions_) {}
  /// Closes its own batch first.
  Batch& operator=(Batch&& other) noexcept;
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;
  ~Batch();

  /// Closes now; does nothing when closed before. Under the policy `barrier` this waits for all
  /// submitted work.
  void close() noexcept { end(true); }
  /// Closes as a batch that an exception ends.
  void abandon() noexcept { end(false); }

  /// Whether it joined a batch that was open already.
  [[nodiscard]] bool joined() const noexcept { return ticket_.ticket == nullptr; }

 private:
  friend class Scheduler;
  Batch(Scheduler& scheduler, TicketRef ticket) noexcept;
  void end(bool learn) noexcept;

  Scheduler* scheduler_ = nullptr;  ///< null once closed
  TicketRef ticket_;                ///< null when it joined another
  int exceptions_ = 0;              ///< under way when it was begun
};

}  // namespace weir
