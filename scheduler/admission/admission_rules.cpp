#include "scheduler/admission/admission_rules.hpp"

#include <algorithm>

namespace weir {
namespace {

/// True if nothing is known of the batch's kind. The estimate is then the largest known kind, which
/// may be too low, and two batches that outgrow their estimates can deadlock. So the guess is used
/// only beside submitted work. Beside an open batch, all memory that is not live must be free, and
/// all of it is reserved while the guessed batch is open.
bool is_guess(const Applicant& batch) { return !batch.kind->footprint && !batch.hint; }

/// Returns the bytes that the line counts. Of an unknown kind it takes those of the last one that
/// was known. A guess may be all memory, and no batch can have more than that.
Bytes bytes_in_line(const Applicant& batch, Bytes estimate, const Pressure& pressure) {
  return is_guess(batch) ? Bytes{} : std::min(estimate, pressure.budget);
}

}  // namespace

Bytes AdmissionRules::live(const Pressure& pressure) const noexcept {
  return minus_or_zero(pressure.held, pressure.awaiting + ledger_.allocated());
}

Bytes AdmissionRules::all_not_live(const Pressure& pressure) const noexcept {
  return minus_or_zero(pressure.budget, live(pressure));
}

Bytes AdmissionRules::estimate(const Applicant& batch, const Pressure& pressure) const noexcept {
  if (is_guess(batch) && ledger_.oldest_kept() != 0) return all_not_live(pressure);
  const auto expected = ledger_.expected(*batch.kind, batch.hint);
  return expected ? *expected : all_not_live(pressure);
}

void AdmissionRules::apply(Applicant& batch, std::string_view kind, std::uint64_t producer) {
  batch.kind = &ledger_.use(kind);
  batch.producer = producer;
}

void AdmissionRules::line_up(Applicant& batch, const Pressure& pressure) {
  if (batch.is_in_line()) return;
  line_.join(batch, batch.producer, bytes_in_line(batch, estimate(batch, pressure), pressure),
             batch.weight);
}

AdmissionRules::Answer AdmissionRules::ask(Applicant& batch, bool cancelled,
                                           const Pressure& pressure) {
  Answer answer{.state = state_of(batch, cancelled, pressure)};
  answer.decision = decide(answer.state);
  if (answer.decision == Decision::kAdmit || batch.is_in_line()) return answer;
  line_up(batch, pressure);
  answer.state = state_of(batch, cancelled, pressure);
  answer.decision = decide(answer.state);
  return answer;
}

void AdmissionRules::leave(Applicant& batch) noexcept {
  line_.leave(batch);
  ledger_.unuse(*batch.kind);
}

AdmissionState AdmissionRules::state_of(const Applicant& batch, bool cancelled,
                                        const Pressure& pressure) const noexcept {
  std::chrono::nanoseconds copy = copy_of(*batch.kind);
  for (const FairLine::Place* place : line_.waiting()) {
    copy = std::max(copy, copy_of(*static_cast<const Applicant*>(place)->kind));
  }
  return {.first_in_line = first() == nullptr || first() == &batch,
          .cancelled = cancelled,
          .grace_over = batch.grace_over,
          .is_due = line_.is_due(batch),
          .pressure = pressure,
          .live = live(pressure),
          .unspent = ledger_.unspent(),
          .estimate = estimate(batch, pressure),
          .open = ledger_.open_count(),
          .lapsed = ledger_.lapsed(),
          .submitted = ledger_.submitted(),
          .queued = ledger_.queued(*batch.kind).time,
          .takes = std::ranges::max(ledger_.expected_times(*batch.kind)),
          .copy = copy};
}

std::optional<Point> AdmissionRules::point_to_await(const Applicant& batch,
                                                    Decision decision) const noexcept {
  const StreamQueue queue = ledger_.queued(*batch.kind);
  if (decision == Decision::kWaitSoft && queue.time.count() != 0) {
    if (const auto point = ledger_.point_to_await(queue.role)) return point;
  }
  return ledger_.point_to_await();
}

Ticket& AdmissionRules::admit(Applicant& batch, Bytes estimate, const Pressure& pressure,
                              CallSite where, std::uint32_t number) {
  const Bytes promised = is_guess(batch) ? all_not_live(pressure) : estimate;
  Ticket& ticket = ledger_.open(*batch.kind, promised, where, number);
  ticket.waited_for_memory = batch.waited_for_room;
  if (batch.held_back.count() != 0) limit_.note_held_back(ledger_.queued(*batch.kind));
  ticket.credit = free_run_.note_held_back(batch.held_back);
  if (batch.is_in_line()) {
    line_.serve(batch);
  } else {
    line_.pass(batch.producer, bytes_in_line(batch, estimate, pressure));
  }
  return ticket;
}

Ticket& AdmissionRules::open_unheld(std::string_view kind, CallSite where, std::uint32_t number) {
  BatchKind& of = ledger_.use(kind);
  try {
    return ledger_.open(of, of.footprint.value_or(Bytes{}), where, number);
  } catch (...) {
    ledger_.unuse(of);
    throw;
  }
}

void AdmissionRules::close(Ticket& ticket, bool learn, const Passed& passed) {
  ledger_.note_passed(passed);
  const StreamQueue queue = ledger_.queued(*ticket.kind);
  if (ticket.waited_for_memory || first() != nullptr) limit_.note_full(queue);
  limit_.note_closed(queue);
  last_closed_by_ = ticket.thread;
  ledger_.close(ticket, learn);
}

void AdmissionRules::settle(const Passed& passed) {
  (void)ledger_.settle(passed, [this](const Ticket& ticket) {
    const BatchRun run = ticket.run();
    const auto busiest = std::ranges::max_element(run, {}, &StreamRun::device_time);
    limit_.note_ran(run);
    const auto credit = ticket.waited_for_memory ? free_run_.behind() : ticket.credit;
    limit_.note_settled(busiest->device_time, free_run_.note_settled(run, credit));
  });
}

}  // namespace weir
