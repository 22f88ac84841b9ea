#include "scheduler/admission/admission_rules.hpp"

#include <algorithm>
#include <limits>

namespace weir {
namespace {

/// True if nothing is known of the batch's kind. The estimate is then the largest known kind, which
/// may be too low, and two batches that outgrow their estimates can deadlock. So the guess is used
/// only beside submitted work. Beside an open batch, all memory that is not live must be free, and
/// all of it is reserved while the guessed batch is open.
bool is_guess(const Applicant& batch) { return !batch.kind->footprint && !batch.hint; }

std::chrono::nanoseconds read(const std::atomic<std::int64_t>& time) {
  return std::chrono::nanoseconds(time.load(std::memory_order_relaxed));
}

/// Returns whether the batch's first task on the stream had all that it needed when the task before
/// it ended: it was enqueued, and no task that it may have waited for ended later. Then the gap is
/// what the device takes from one task to the next, and no longer queue would shorten it. Some
/// microseconds for each batch, with credit that never ends, would raise the target for ever.
bool was_ready(const Ticket& ticket, std::size_t role) {
  if (read(ticket.starved.at(role)).count() != 0) return false;
  const auto begun = read(ticket.begun.at(role));
  const auto since = begun - read(ticket.gap.at(role));
  for (std::size_t other = 0; other < kStreamRoles; ++other) {
    const bool is_earlier = other != role && read(ticket.begun.at(other)) < begun;
    if (is_earlier && read(ticket.ended.at(other)) > since) return false;
  }
  return true;
}

/// Returns how long copies of this kind are expected to take; zero if it has never settled.
std::chrono::nanoseconds copy_of(const BatchKind& kind) {
  return kind.device_time.at(index_of(StreamRole::kCopyIn));
}

bool is_copy(std::size_t role) { return role == index_of(StreamRole::kCopyIn); }

std::chrono::nanoseconds queued_of(std::span<const Ledger::ProducerQueue> queues,
                                   std::uint64_t producer) {
  const auto queue =
      std::ranges::lower_bound(queues, producer, {}, &Ledger::ProducerQueue::producer);
  return queue != queues.end() && queue->producer == producer ? queue->queued
                                                              : std::chrono::nanoseconds{};
}

double for_weight(std::chrono::nanoseconds time, std::uint32_t weight) {
  return static_cast<double>(time.count()) / weight;
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

void AdmissionRules::join(Applicant& batch, std::string_view kind, const Producer& producer,
                          const Pressure& pressure, std::uint32_t weight) {
  batch.kind = &ledger_.kind(kind);
  // A newcomer waits until others have had as much: so no guess, which may be all memory, and no
  // more than a batch can have.
  const Bytes bytes = is_guess(batch) ? Bytes{} : estimate(batch, pressure);
  line_.join(batch, producer, std::min(bytes, pressure.budget), weight);
  batch.joined_at = ran_;
}

double AdmissionRules::queued_with(const FairLine::Place& place, Queues queues) const noexcept {
  const BatchKind& kind = *static_cast<const Applicant&>(place).kind;
  return for_weight(queued_of(queues, place.producer) + ledger_.expected_time(kind), place.weight);
}

bool AdmissionRules::time_is_scarce() const noexcept {
  const auto target = control_.target(longest_copy()).time.value_or(std::chrono::nanoseconds{});
  return target.count() != 0 && ledger_.queued_and_open() >= target / 2;
}

std::chrono::nanoseconds AdmissionRules::longest_copy() const noexcept {
  std::chrono::nanoseconds longest{};
  for (const FairLine::Place* place : line_.waiting()) {
    const BatchKind& kind = *static_cast<const Applicant*>(place)->kind;
    longest = std::max(longest, copy_of(kind));
  }
  return longest;
}

double AdmissionRules::most_queued(Queues queues) const noexcept {
  double most = std::numeric_limits<double>::infinity();
  for (const FairLine::Place* place : line_.waiting()) {
    most = std::min(most, queued_with(*place, queues));
  }
  return most;
}

FairLine::Place* AdmissionRules::first() const noexcept {
  if (line_.size() < 2 || !time_is_scarce()) return line_.first();
  const Queues queues = ledger_.queues();
  const double most = most_queued(queues);  // of one of them, so that one may go
  return line_.first([this, queues, most, weights = line_.weights()](const FairLine::Place& place) {
    const auto& batch = static_cast<const Applicant&>(place);
    return queued_with(place, queues) <= most || is_overdue(batch, weights);
  });
}

bool AdmissionRules::is_overdue(const Applicant& batch, std::uint64_t weights) const noexcept {
  const double ran = static_cast<double>((ran_ - batch.joined_at).count());
  const double share = for_weight(ledger_.expected_time(*batch.kind), batch.weight);
  return ran >= share * static_cast<double>(weights);
}

std::uint64_t AdmissionRules::yields_to(const Applicant& batch) const noexcept {
  const std::uint64_t producer = line_.yields_to(batch);
  if (producer == 0 || !time_is_scarce()) return producer;
  const Queues queues = ledger_.queues();
  return line_.yields_to(
      batch, [queues, most = most_queued(queues)](std::uint64_t other, std::uint32_t weight) {
        return for_weight(queued_of(queues, other), weight) <= most;
      });
}

AdmissionState AdmissionRules::state_of(const Applicant& batch, bool cancelled,
                                        const Pressure& pressure) const {
  return {.first_in_line = first() == &batch,
          .cancelled = cancelled,
          .grace_over = batch.grace_over,
          .yields = yields_to(batch) != 0,
          .held = pressure.held,
          .budget = pressure.budget,
          .live = live(pressure),
          .unspent = ledger_.unspent(),
          .estimate = estimate(batch, pressure),
          .open = ledger_.open_count(),
          .submitted = ledger_.submitted(),
          .queued = ledger_.queued_and_open(),
          .copy = longest_copy()};
}

Ticket& AdmissionRules::admit(Applicant& batch, Bytes estimate, const Pressure& pressure,
                              CallSite where, std::uint32_t number) {
  batch.bytes = is_guess(batch) ? all_not_live(pressure) : estimate;
  Ticket& ticket = ledger_.open(*batch.kind, batch.bytes, where, number);
  ticket.producer = batch.producer;
  ticket.released = batch.released;
  ticket.waited_for_memory = batch.waited_for_room;
  ticket.credit = control_.note_held_back(batch.held_back, longest_copy());
  if (batch.yielded_to != 0 && ledger_.submitted() == 0) line_.note_late(batch.yielded_to);
  line_.serve(batch);
  return ticket;
}

void AdmissionRules::close(Ticket& ticket, const std::array<Point, kStreamRoles>& points,
                           bool learn, Time now,
                           const std::array<std::uint64_t, kStreamRoles>& passed) {
  const auto unused = ledger_.queued_behind(passed) - copy_of(*ticket.kind);
  control_.note_unused(std::max(unused, std::chrono::nanoseconds{}));
  if (ticket.released && learn) control_.note_lead(now - *ticket.released);
  ledger_.close(ticket, points, learn);
  // Here rather than on settling: the peak is known, and the producer's next place comes later.
  if (ticket.producer != 0) line_.correct(ticket.producer, ticket.estimate, ticket.peak);
}

std::size_t AdmissionRules::note_busiest(const Ticket& ticket) noexcept {
  std::size_t busiest = 0;
  for (std::size_t role = 0; role < kStreamRoles; ++role) {
    busy_.at(role) += read(ticket.device_time.at(role)) - busy_.at(role) / 16;
    if (busy_.at(role) > busy_.at(busiest)) busiest = role;
  }
  if (read(ticket.device_time.at(busiest)).count() != 0) return busiest;
  return static_cast<std::size_t>(std::ranges::max_element(ticket.device_time, {}, read) -
                                  ticket.device_time.begin());
}

std::chrono::nanoseconds AdmissionRules::lost_gap(const Ticket& ticket, std::size_t role) noexcept {
  const auto starved = read(ticket.starved.at(role));
  auto gap = read(ticket.gap.at(role));
  if (is_copy(role)) return std::min(gap, starved);  // a copy waits for no other stream
  if (was_ready(ticket, role)) gap = {};
  const auto begun = read(ticket.begun.at(role));
  for (std::size_t other = 0; other < kStreamRoles; ++other) {
    if (other == role || other == index_of(StreamRole::kCopyOut)) continue;  // nobody waits for it
    const bool is_used = read(ticket.device_time.at(other)).count() != 0;
    const bool is_before = is_used && read(ticket.begun.at(other)) < begun;
    if (!is_copy(other)) {  // it ran meanwhile, and this stream waited for it
      const auto ended = is_before ? read(ticket.ended.at(other)) : ended_.at(other);
      gap = std::min(gap, std::max(begun - ended, std::chrono::nanoseconds{}));
    }
    if (!is_before) continue;
    gap = std::min(gap, control_.could_end_earlier(earlier_.at(other),
                                                   read(ticket.starved.at(other)), ticket.credit));
  }
  return gap;
}

RunBatch AdmissionRules::run_of(const Ticket& ticket) noexcept {
  const std::size_t busiest = note_busiest(ticket);
  const RunBatch run{.device_time = read(ticket.device_time.at(busiest)),
                     .gap = lost_gap(ticket, busiest),
                     .credit = ticket.credit,
                     .waited_for_memory = ticket.waited_for_memory};
  for (std::size_t role = 0; role < kStreamRoles; ++role) {
    ended_.at(role) = std::max(ended_.at(role), read(ticket.ended.at(role)));
  }
  return run;
}

void AdmissionRules::settle(const std::array<std::uint64_t, kStreamRoles>& passed) {
  (void)ledger_.settle(passed, [this](const Ticket& ticket) {
    const RunBatch run = run_of(ticket);
    control_.note_settled(run);
    ran_ += run.device_time;
  });
}

}  // namespace weir
