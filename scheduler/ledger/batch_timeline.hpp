#pragma once

// Reports batches to recorders.

#include <chrono>
#include <cstdint>

#include "allocator/base/pressure.hpp"
#include "allocator/timeline/sink.hpp"
#include "scheduler/ledger/ledger.hpp"

namespace weir {

/// Returns the next batch number of the process, from 1. May start or stop a recording, so the
/// caller must hold no lock.
[[nodiscard]] std::uint32_t next_batch_number() noexcept;

/// Restarts the numbers at 1, for a program that makes several runs. No batch may be open or in
/// flight.
void number_batches_anew() noexcept;

// The next four need the lock that guards the ticket.

/// What a batch was admitted under.
struct AdmittedUnder {
  std::chrono::nanoseconds target{};  ///< the run-ahead target; zero: none
  Pressure pressure{};                ///< of the pool; number 0: it was not looked at
};
/// Records that the batch is open.
void note_admission(Ticket& ticket, TimelineAdmission admission,
                    const AdmittedUnder& under = {}) noexcept;
/// Records that the batch was closed or settled (kClose or kSettle). Returns whether a recorder got
/// it.
bool note_batch(TimelineKind kind, Ticket& ticket) noexcept;
/// Tells a recorder that began later that the batch is open or in flight; once per recorder.
void note_live(TimelineSink& sink, Ticket& ticket) noexcept;

/// Records that a batch settled while nothing was recorded.
void note_settled_unheard(TimelineSink& sink, const SettledUnheard& batch) noexcept;

}  // namespace weir
