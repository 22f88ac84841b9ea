#include "scheduler/ledger/ledger.hpp"

#include <algorithm>
#include <utility>

#include "scheduler/ledger/batch_timeline.hpp"

namespace weir {
namespace {

bool refers(TicketRef ref) { return ref.ticket != nullptr && ref.ticket->serial == ref.serial; }

bool refers_to_open(TicketRef ref) {
  return refers(ref) && ref.ticket->state == Ticket::State::kOpen;
}

/// Returns how much of its peak it has given back by now.
Bytes given_back(const Ticket& ticket) { return minus_or_zero(ticket.peak, ticket.net); }

}  // namespace

BatchKind& Ledger::use(std::string_view name) {
  if (last_kind_ == nullptr || last_kind_->name != name) {
    auto found = kinds_.find(name);
    if (found == kinds_.end()) {
      if (kinds_.size() >= 2 * kRememberedKinds) forget_kinds();
      auto kind = std::make_unique<BatchKind>();
      kind->name = name;
      found = kinds_.emplace(kind->name, std::move(kind)).first;
    }
    last_kind_ = found->second.get();
  }
  ++last_kind_->users;
  last_kind_->used = ++uses_;
  return *last_kind_;
}

void Ledger::forget_kinds() noexcept {
  std::erase_if(kinds_, [this](const auto& entry) {
    BatchKind& kind = *entry.second;
    if (kind.users != 0 || uses_ - kind.used < kRememberedKinds) return false;
    if (kind.last != nullptr) free_.push_back(kind.last);
    return true;
  });
  last_kind_ = nullptr;
}

std::optional<Bytes> Ledger::expected(const BatchKind& kind,
                                      std::optional<Bytes> hint) const noexcept {
  if (kind.footprint) return kind.footprint;
  if (hint) return hint;
  return most_given_back_.count != 0 ? std::optional(most_given_back_) : std::nullopt;
}

Ticket& Ledger::open(BatchKind& kind, Bytes estimate, CallSite where, std::uint32_t number) {
  if (free_.empty()) {
    // Reserves room for every ticket in every list, so that no later step can fail.
    const std::size_t count = tickets_.size() + 1;
    for (auto* list : {&free_, &open_, &submitted_}) list->reserve(count);
    settled_unheard_.reserve(count);
    tickets_.push_back(std::make_unique<Ticket>());
    free_.push_back(tickets_.back().get());
  }
  Ticket& ticket = *free_.back();
  free_.pop_back();
  open_.push_back(&ticket);
  ticket.state = Ticket::State::kOpen;
  ticket.serial = ++serials_;
  ticket.number = number;
  ticket.told = {};
  ticket.kind = &kind;
  ticket.where = where;
  ticket.expected = expected_times(kind);
  ticket.estimate = estimate;
  ticket.net = ticket.peak = ticket.awaiting = {};
  ticket.closed_before = closed_;
  ticket.found_idle.reset();
  ticket.learn = true;
  ticket.lapsed = false;
  ticket.touched = {};
  ticket.credit = {};
  ticket.waited_for_memory = false;
  ticket.stalled = false;
  for (std::size_t role = 0; role < kStreamRoles; ++role) {
    queued_.at(role) += ticket.expected.at(role);
  }
  return ticket;
}

void Ledger::note_allocated(TicketRef ref, Bytes bytes) {
  if (!refers_to_open(ref)) return;
  ref.ticket->net += bytes;
  ref.ticket->peak = std::max(ref.ticket->peak, ref.ticket->net);
  ref.ticket->closed_before = closed_;
  ref.ticket->found_idle.reset();
  ref.ticket->lapsed = false;
}

void Ledger::note_waited(TicketRef ref) {
  if (refers_to_open(ref)) ref.ticket->waited_for_memory = true;
}

void Ledger::note_freed(TicketRef ref, Bytes bytes, bool awaiting) {
  if (!refers(ref)) return;
  // Not below zero: allocations of another thread after the batch closed were not counted.
  ref.ticket->net = minus_or_zero(ref.ticket->net, bytes);
  if (awaiting && ref.ticket->state == Ticket::State::kOpen) ref.ticket->awaiting += bytes;
  // Of a batch that has settled, before its frontend has dropped all of it.
  if (ref.ticket->kind != nullptr && ref.ticket->kind->last == ref.ticket) {
    most_given_back_ = std::max(most_given_back_, given_back(*ref.ticket));
  }
}

void Ledger::close(Ticket& ticket, bool learn) {
  ticket.stop = {};
  std::erase(open_, &ticket);
  ticket.state = Ticket::State::kSubmitted;
  ticket.learn = learn;
  ticket.closed = ++closed_;
  for (std::size_t role = 0; role < kStreamRoles; ++role) {
    if (!ticket.touched.contains(role)) dequeue(ticket, role);
  }
  submitted_.push_back(&ticket);
  has_news_ = pass(ticket) || has_news_;
  (void)note_batch(TimelineKind::kClose, ticket);
}

void Ledger::dequeue(Ticket& ticket, std::size_t role) noexcept {
  queued_.at(role) -= std::exchange(ticket.expected.at(role), {});
}

void Ledger::note_passed(const std::array<std::uint64_t, kStreamRoles>& passed) noexcept {
  bool is_new = false;
  for (std::size_t role = 0; role < kStreamRoles; ++role) {
    if (passed.at(role) <= passed_.at(role)) continue;
    passed_.at(role) = passed.at(role);
    is_new = true;
  }
  if (!is_new) return;
  has_news_ = true;
  for (Ticket* ticket : submitted_) (void)pass(*ticket);
}

bool Ledger::pass(Ticket& ticket) noexcept {
  bool is_passed = true;
  for (const std::size_t role : ticket.touched) {
    if (ticket.points.at(role).sequence <= passed_.at(role)) {
      dequeue(ticket, role);
    } else {
      is_passed = false;
    }
  }
  return is_passed;
}

void Ledger::settle(Ticket& ticket) {
  if (ticket.learn) learn_times(ticket);
  for (const std::size_t role : ticket.touched) {
    Ticket::Ran& on = ticket.ran.at(role);
    for (auto* time : {&on.device_time, &on.gap, &on.starved, &on.begun, &on.ended}) {
      time->store(0, std::memory_order_relaxed);
    }
  }
  if (!note_batch(TimelineKind::kSettle, ticket)) keep_unheard(ticket);
  ticket.state = Ticket::State::kSettled;
  --ticket.kind->users;
  if (ticket.learn) {
    learn_from(ticket);
  } else {
    free_.push_back(&ticket);
  }
}

void Ledger::keep_unheard(const Ticket& ticket) noexcept {
  // Bounded by the number of tickets: a batch begun while nothing was recorded is known to nobody.
  const bool is_known = ticket.told.admission != nullptr;
  if (!is_known || settled_unheard_.size() == settled_unheard_.capacity()) return;
  ++ticket.kind->users;
  settled_unheard_.push_back({.number = ticket.number,
                              .kind = ticket.kind,
                              .where = ticket.where,
                              .peak = ticket.peak,
                              .knew_close = ticket.told.close != nullptr});
}

std::vector<SettledUnheard> Ledger::take_settled_unheard() {
  std::vector<SettledUnheard> none;
  none.reserve(tickets_.size());
  return std::exchange(settled_unheard_, std::move(none));
}

void Ledger::learn_times(const Ticket& ticket) noexcept {
  BatchKind& kind = *ticket.kind;
  const bool is_first_of_all = mean_times_ == StreamTimes{};
  for (std::size_t role = 0; role < kStreamRoles; ++role) {
    const std::chrono::nanoseconds time(
        ticket.ran.at(role).device_time.load(std::memory_order_relaxed));
    const auto move = [time](std::chrono::nanoseconds& average, bool is_first, int part) {
      if (time != average) average = is_first ? time : average + (time - average) / part;
    };
    move(kind.device_time.at(role), !kind.footprint, 4);
    move(mean_times_.at(role), is_first_of_all, 16);
  }
}

void Ledger::learn_from(Ticket& ticket) {
  BatchKind& kind = *ticket.kind;
  if (kind.last == nullptr) {
    most_given_back_ -= Bytes{most_given_back_.count / kFadeKinds};
  } else {
    const Bytes largest = std::max(kind.given_back.value_or(Bytes{}), given_back(*kind.last));
    // A larger value counts at once and a smaller one slowly: too low an estimate costs more.
    kind.given_back = Bytes{largest.count - minus_or_zero(largest, ticket.peak).count / 16};
    free_.push_back(kind.last);
  }
  kind.last = &ticket;  // kept to see what it has given back when the next one settles
  kind.footprint = std::max(kind.given_back.value_or(Bytes{}), ticket.peak);
  most_given_back_ = std::max(most_given_back_, given_back(ticket));
}

bool Ledger::is_open(TicketRef ref) const noexcept { return refers_to_open(ref); }

Bytes Ledger::charge(const Ticket& ticket) const noexcept {
  switch (ticket.state) {
    case Ticket::State::kOpen:
      return ticket.lapsed ? ticket.net : std::max(ticket.estimate, ticket.net);
    case Ticket::State::kSubmitted:
      return ticket.awaiting;
    case Ticket::State::kSettled:
      break;
  }
  return {};
}

Bytes Ledger::charged(Bytes awaiting) const noexcept {
  Bytes left;
  for (const Ticket* ticket : submitted_) left += charge(*ticket);
  Bytes sum = std::min(left, awaiting);
  for (const Ticket* ticket : open_) sum += charge(*ticket);
  return sum;
}

Bytes Ledger::unspent() const noexcept {
  Bytes sum;
  for (const Ticket* ticket : open_) sum += charge(*ticket) - ticket->net;
  return sum;
}

Bytes Ledger::allocated() const noexcept {
  Bytes sum;
  for (const Ticket* ticket : open_) sum += ticket->net;
  return sum;
}

std::uint64_t Ledger::oldest_kept() const noexcept {
  const auto oldest = std::ranges::find(open_, false, &Ticket::lapsed);
  return oldest != open_.end() ? (*oldest)->serial : 0;
}

const Ticket* Ledger::take_forgotten(std::chrono::steady_clock::time_point now,
                                     std::chrono::nanoseconds patience) noexcept {
  const auto forgotten = std::ranges::find_if(open_, [&](Ticket* ticket) {
    if (ticket->lapsed || closed_ - ticket->closed_before < kManyBatches) return false;
    if (!ticket->found_idle) ticket->found_idle = now;
    return now - *ticket->found_idle >= patience;
  });
  if (forgotten == open_.end()) return nullptr;
  lapse(**forgotten);
  return *forgotten;
}

void Ledger::lapse(Ticket& ticket) noexcept {
  ticket.lapsed = true;
  for (std::size_t role = 0; role < kStreamRoles; ++role) dequeue(ticket, role);
}

StreamQueue Ledger::queued(const BatchKind& kind) const noexcept {
  StreamQueue fullest;
  const StreamTimes& uses = expected_times(kind);
  for (std::size_t role = 0; role < kStreamRoles; ++role) {
    if (uses.at(role).count() == 0 || queued_.at(role) <= fullest.time) continue;
    const auto runs = std::ranges::find_if(submitted_, [role](const Ticket* ticket) {
      return ticket->expected.at(role).count() != 0;
    });
    if (runs == submitted_.end()) continue;
    const auto behind = queued_.at(role) - (*runs)->expected.at(role);
    if (behind > fullest.time) fullest = {.role = role, .time = behind, .all = queued_.at(role)};
  }
  return fullest;
}

std::optional<Point> Ledger::point_to_await(std::optional<std::size_t> role) const noexcept {
  for (std::size_t i = submitted_.size() / 4; i < submitted_.size(); ++i) {
    const Ticket* ticket = submitted_[i];
    for (const std::size_t on : ticket->touched) {
      const Point& point = ticket->points.at(on);
      if (point.sequence == kUnrecorded || point.sequence <= passed_.at(on)) continue;
      if (on == role.value_or(on)) return point;
    }
  }
  return std::nullopt;
}

StreamRoleSet Ledger::unrecorded() const noexcept {
  StreamRoleSet roles;
  for (const Ticket* ticket : submitted_) {
    for (const std::size_t role : ticket->touched) {
      if (ticket->points.at(role).sequence == kUnrecorded) roles.insert(kAllRoles.at(role));
    }
  }
  return roles;
}

void Ledger::note_recorded(std::size_t role, Point point, std::uint64_t closed) noexcept {
  for (Ticket* ticket : submitted_) {
    if (ticket->closed > closed) continue;
    Point& own = ticket->points.at(role);
    if (own.sequence == kUnrecorded) own = point;
    has_news_ = true;
  }
}

}  // namespace weir
