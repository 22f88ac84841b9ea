#pragma once

// What recorders are told of batches.

#include <cstdint>

#include "allocator/timeline/sink.hpp"
#include "scheduler/admission/admission_decision.hpp"
#include "scheduler/admission/ledger.hpp"

namespace weir {

/// The number of a batch that is about to be begun, from 1 in the process. It may begin or end what
/// is recorded, so no lock may be held.
[[nodiscard]] std::uint32_t next_batch_number() noexcept;

/// The next batch is number 1 again, for a program that makes several runs. No batch may be open or
/// in flight.
void number_batches_anew() noexcept;

// The lock that guards the ticket is held at each of the next four.

/// Says that the batch is open from now on.
void note_admission(Ticket& ticket, TimelineAdmission admission) noexcept;
/// Says that the batch was closed or settled: kClose or kSettle. Returns whether somebody heard it.
bool note_batch(TimelineKind kind, Ticket& ticket) noexcept;
/// Says that the batch is open, or in flight, to a sink that began after it. A sink that was told
/// already is not told twice.
void note_live(TimelineSink& sink, Ticket& ticket) noexcept;

/// Says that a batch settled while nothing was recorded.
void note_settled_unheard(TimelineSink& sink, const SettledUnheard& batch) noexcept;

/// Says that the batch was held back from the slice's beginning until now.
void note_stall(const TimelineSlice& slice, Decision reason, const Ticket& ticket) noexcept;

}  // namespace weir
