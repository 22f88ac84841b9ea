#pragma once

// What recorders are told of batches.

#include <cstdint>

#include "allocator/timeline/sink.hpp"
#include "scheduler/admission_decision.hpp"
#include "scheduler/ledger.hpp"

namespace weir {

/// The number of a batch that is about to be begun, from 1 in the process. It may begin or end what
/// is recorded, so no lock may be held.
[[nodiscard]] std::uint32_t next_batch_number() noexcept;

/// Says that the batch was closed or settled: kClose or kSettle.
void note_batch(TimelineKind kind, const Ticket& ticket) noexcept;
/// The same to `sink`; kAdmit too.
void note_batch(TimelineSink& sink, TimelineKind kind, const Ticket& ticket,
                std::uint8_t detail = 0) noexcept;

/// Says that the batch was held back from the slice's beginning until now.
void note_stall(const TimelineSlice& slice, Decision reason, const Ticket& ticket) noexcept;

}  // namespace weir
