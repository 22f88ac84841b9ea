#include "scheduler/ledger/batch_timeline.hpp"

#include <atomic>
#include <utility>

namespace weir {
namespace {

constinit std::atomic<std::uint32_t> last_number{0};

void write(TimelineSink& sink, TimelineKind kind, const Ticket& ticket,
           TimelineAdmission admission = {}, const AdmittedUnder& under = {}) noexcept {
  const Bytes bytes = kind == TimelineKind::kAdmit ? ticket.estimate : ticket.peak;
  const Pressure& pressure = under.pressure;
  sink.write({.id = pressure.number,
              .bytes = bytes.count,
              .requested = static_cast<std::uint64_t>(under.target.count()),
              .allocated = minus_or_zero(pressure.held, pressure.awaiting).count,
              .awaiting = pressure.awaiting.count,
              .cached = pressure.cached.count,
              .batch = ticket.number,
              .name = sink.name(ticket.kind->name),
              .site = sink.site(ticket.where.file, ticket.where.line),
              .kind = kind,
              .detail = static_cast<std::uint8_t>(admission)});
}

}  // namespace

std::uint32_t next_batch_number() noexcept {
  const std::uint32_t number = last_number.fetch_add(1, std::memory_order_relaxed) + 1;
  if (TimelineSink* listener = timeline_batches()) listener->note_batch(number);
  return number;
}

void number_batches_anew() noexcept { last_number.store(0, std::memory_order_relaxed); }

void note_admission(Ticket& ticket, TimelineAdmission admission,
                    const AdmittedUnder& under) noexcept {
  if (TimelineSink* sink = timeline_sink()) {
    write(*sink, TimelineKind::kAdmit, ticket, admission, under);
    ticket.told.admission = sink;
  }
}

bool note_batch(TimelineKind kind, Ticket& ticket) noexcept {
  TimelineSink* const sink = timeline_sink();
  if (sink == nullptr) return false;
  write(*sink, kind, ticket);
  if (kind == TimelineKind::kClose) ticket.told.close = sink;
  return true;
}

void note_live(TimelineSink& sink, Ticket& ticket) noexcept {
  if (std::exchange(ticket.told.admission, &sink) != &sink) {
    write(sink, TimelineKind::kAdmit, ticket, TimelineAdmission::kBefore);
  }
  if (ticket.state != Ticket::State::kSubmitted) return;
  if (std::exchange(ticket.told.close, &sink) != &sink) write(sink, TimelineKind::kClose, ticket);
}

void note_settled_unheard(TimelineSink& sink, const SettledUnheard& batch) noexcept {
  TimelineRecord record{.bytes = batch.peak.count,
                        .batch = batch.number,
                        .name = sink.name(batch.kind->name),
                        .site = sink.site(batch.where.file, batch.where.line),
                        .kind = TimelineKind::kClose};
  if (!batch.knew_close) sink.write(record);
  record.kind = TimelineKind::kSettle;
  sink.write(record);
}

}  // namespace weir
