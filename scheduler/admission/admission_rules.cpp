#include "scheduler/admission/admission_rules.hpp"

#include <algorithm>

namespace weir {
namespace {

/// True if nothing is known of the batch's kind. The estimate is then the largest known kind, which
/// may be too low, and two batches that outgrow their estimates can deadlock. So the guess is used
/// only beside submitted work. Beside an open batch, all memory that is not live must be free, and
/// all of it is reserved while the guessed batch is open.
bool is_guess(const Applicant& batch) { return !batch.kind->footprint && !batch.hint; }

/// Returns the stream on which the batch took longest, or took time at all.
std::size_t busiest(const Ticket& ticket) {
  const auto time = [&](std::size_t role) {
    return ticket.device_time.at(role).load(std::memory_order_relaxed);
  };
  std::size_t most = 0;
  for (std::size_t role = 1; role < kStreamRoles; ++role) {
    if (time(role) > time(most)) most = role;
  }
  return most;
}

}  // namespace

Bytes AdmissionRules::live(const Pressure& pressure) const {
  return minus_or_zero(pressure.held, pressure.awaiting + ledger_.allocated());
}

Bytes AdmissionRules::all_not_live(const Pressure& pressure) const {
  return minus_or_zero(pressure.budget, live(pressure));
}

Bytes AdmissionRules::estimate(const Applicant& batch, const Pressure& pressure) const {
  if (is_guess(batch) && ledger_.keeps_for_open()) return all_not_live(pressure);
  const auto expected = ledger_.expected(*batch.kind, batch.hint);
  return expected ? *expected : all_not_live(pressure);
}

void AdmissionRules::join(Applicant& batch, std::string_view kind, std::uint64_t producer,
                          const Pressure& pressure) {
  batch.kind = &ledger_.kind(kind);
  line_.join(batch, producer, estimate(batch, pressure));
}

AdmissionState AdmissionRules::state_of(const Applicant& batch, bool cancelled,
                                        const Pressure& pressure) const {
  return {.first_in_line = line_.is_first(batch),
          .cancelled = cancelled,
          .grace_over = batch.grace_over,
          .yields = line_.yields(batch),
          .held = pressure.held,
          .budget = pressure.budget,
          .live = live(pressure),
          .unspent = ledger_.unspent(),
          .estimate = estimate(batch, pressure),
          .open = ledger_.open_count(),
          .submitted = ledger_.submitted(),
          .queued = ledger_.queued_behind()};
}

Ticket& AdmissionRules::admit(Applicant& batch, Bytes estimate, const Pressure& pressure,
                              CallSite where, std::uint32_t number) {
  batch.bytes = is_guess(batch) ? all_not_live(pressure) : estimate;
  Ticket& ticket = ledger_.open(*batch.kind, batch.bytes, where, number);
  ticket.producer = batch.producer;
  ticket.released = batch.released;
  ticket.credit = control_.note_held_back(batch.held_back);
  line_.serve(batch);
  return ticket;
}

void AdmissionRules::close(Ticket& ticket, const std::array<Point, kStreamRoles>& points,
                           bool learn, Time now) {
  control_.note_unused(ledger_.queued_behind());
  if (ticket.released) {
    const auto copy = ticket.kind->device_time.at(index_of(StreamRole::kCopyIn));
    control_.note_lead(now - *ticket.released + copy);
  }
  ledger_.close(ticket, points, learn);
  // Here rather than on settling: the peak is known, and the producer's next place comes later.
  if (ticket.producer != 0) line_.correct(ticket.producer, ticket.estimate, ticket.peak);
}

void AdmissionRules::settle(const std::array<std::uint64_t, kStreamRoles>& passed) {
  (void)ledger_.settle(passed, [this](const Ticket& ticket) {
    const std::size_t role = busiest(ticket);
    const auto relaxed = std::memory_order_relaxed;
    control_.note_settled(
        {.device_time = std::chrono::nanoseconds(ticket.device_time.at(role).load(relaxed)),
         .gap = std::chrono::nanoseconds(ticket.gap.at(role).load(relaxed)),
         .credit = ticket.credit});
  });
}

}  // namespace weir
