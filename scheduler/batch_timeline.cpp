#include "scheduler/batch_timeline.hpp"

#include <atomic>

namespace weir {
namespace {

/// The stall that a decision to wait leads to.
TimelineStall stall_of(Decision reason) noexcept {
  switch (reason) {
    case Decision::kWaitSoft:
      return TimelineStall::kRunAhead;
    case Decision::kWaitTurn:
    case Decision::kWaitShare:
      return TimelineStall::kTurn;
    case Decision::kWaitOpen:
      return TimelineStall::kOpen;
    default:
      return TimelineStall::kBudget;
  }
}

}  // namespace

std::uint32_t next_batch_number() noexcept {
  static std::atomic<std::uint32_t> last{0};
  const std::uint32_t number = last.fetch_add(1, std::memory_order_relaxed) + 1;
  if (TimelineSink* listener = timeline_batches()) listener->note_batch(number);
  return number;
}

void note_batch(TimelineSink& sink, TimelineKind kind, const Ticket& ticket,
                std::uint8_t detail) noexcept {
  const Bytes bytes = kind == TimelineKind::kAdmit ? ticket.estimate : ticket.peak;
  sink.write({.bytes = bytes.count,
              .batch = ticket.number,
              .name = sink.name(ticket.kind->name),
              .site = sink.site(ticket.where.file, ticket.where.line),
              .kind = kind,
              .detail = detail});
}

void note_batch(TimelineKind kind, const Ticket& ticket) noexcept {
  if (TimelineSink* sink = timeline_sink()) note_batch(*sink, kind, ticket);
}

void note_stall(const TimelineSlice& slice, Decision reason, const Ticket& ticket) noexcept {
  TimelineSink* const sink = slice.sink();
  if (sink == nullptr) return;
  slice.write({.batch = ticket.number,
               .name = sink->name(ticket.kind->name),
               .site = sink->site(ticket.where.file, ticket.where.line),
               .kind = TimelineKind::kStall,
               .detail = static_cast<std::uint8_t>(stall_of(reason))});
}

}  // namespace weir
