#pragma once

// Reports batches to recorders.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

#include "allocator/timeline/sink.hpp"
#include "scheduler/admission/admission_decision.hpp"
#include "scheduler/admission/ledger.hpp"

namespace weir {

/// Returns the next batch number of the process, from 1. May start or stop a recording, so the
/// caller must hold no lock.
[[nodiscard]] std::uint32_t next_batch_number() noexcept;

/// Restarts the numbers at 1, for a program that makes several runs. No batch may be open or in
/// flight.
void number_batches_anew() noexcept;

// The next four need the lock that guards the ticket.

/// Records that the batch is open. `target` is the run-ahead target that it was admitted under;
/// zero if there is none.
void note_admission(Ticket& ticket, TimelineAdmission admission,
                    std::chrono::nanoseconds target = {}) noexcept;
/// Records that the batch was closed or settled (kClose or kSettle). Returns whether a recorder got
/// it.
bool note_batch(TimelineKind kind, Ticket& ticket) noexcept;
/// Tells a recorder that began later that the batch is open or in flight; once per recorder.
void note_live(TimelineSink& sink, Ticket& ticket) noexcept;

/// Records that a batch settled while nothing was recorded.
void note_settled_unheard(TimelineSink& sink, const SettledUnheard& batch) noexcept;

/// Returns what a batch of that decision waits for; nothing if it does not wait.
[[nodiscard]] std::optional<TimelineStall> stall_of(Decision decision) noexcept;
/// Records that batch `number`, of kind `kind` and begun at `where`, was held back for `cause` from
/// the slice's beginning until now.
void note_stall(const TimelineSlice& slice, TimelineStall cause, std::uint32_t number,
                std::string_view kind, CallSite where) noexcept;

}  // namespace weir
