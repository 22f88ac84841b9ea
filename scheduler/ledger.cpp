#include "scheduler/ledger.hpp"

#include <algorithm>

namespace weir {
namespace {

bool passed_all(const Ticket& ticket, const std::array<std::uint64_t, kStreamRoles>& passed) {
  for (std::size_t role = 0; role < kStreamRoles; ++role) {
    if (ticket.touched.at(role) && ticket.points.at(role).sequence > passed.at(role)) return false;
  }
  return true;
}

bool refers(TicketRef ref) {
  return ref.ticket != nullptr && ref.ticket->serial == ref.serial &&
         ref.ticket->state == Ticket::State::kOpen;
}

}  // namespace

BatchKind& Ledger::kind(std::string_view name) {
  const auto found = kinds_.find(name);
  if (found != kinds_.end()) return *found->second;
  auto kind = std::make_unique<BatchKind>();
  kind->name = name;
  return *kinds_.emplace(kind->name, std::move(kind)).first->second;
}

Ticket& Ledger::open(BatchKind& kind, Bytes estimate) {
  if (free_.empty()) {
    // Room for every ticket in every list first, so that no later step of a batch can fail.
    const std::size_t count = tickets_.size() + 1;
    for (auto* list : {&free_, &open_, &submitted_}) list->reserve(count);
    tickets_.push_back(std::make_unique<Ticket>());
    free_.push_back(tickets_.back().get());
  }
  Ticket& ticket = *free_.back();
  free_.pop_back();
  open_.push_back(&ticket);
  ticket.state = Ticket::State::kOpen;
  ticket.serial = ++serials_;
  ticket.kind = &kind;
  ticket.estimate = estimate;
  ticket.net = ticket.peak = ticket.awaiting = {};
  ticket.learn = true;
  ticket.touched = {};
  ticket.device_time.store(0, std::memory_order_relaxed);
  return ticket;
}

void Ledger::note_allocated(TicketRef ref, Bytes bytes) {
  if (!refers(ref)) return;
  ref.ticket->net += bytes;
  ref.ticket->peak = std::max(ref.ticket->peak, ref.ticket->net);
}

void Ledger::note_freed(TicketRef ref, Bytes bytes, bool awaiting) {
  if (!refers(ref)) return;
  if (awaiting) {
    ref.ticket->awaiting += bytes;
  } else {
    ref.ticket->net -= bytes;
  }
}

void Ledger::close(Ticket& ticket, const std::array<Point, kStreamRoles>& points, bool learn) {
  std::erase(open_, &ticket);
  ticket.state = Ticket::State::kSubmitted;
  ticket.points = points;
  ticket.learn = learn;
  ticket.closed = ++closed_;
  submitted_.push_back(&ticket);
}

std::size_t Ledger::settle(const std::array<std::uint64_t, kStreamRoles>& passed) {
  const auto done = [&](Ticket* ticket) {
    if (!passed_all(*ticket, passed)) return false;
    learn_from(*ticket);
    ticket->state = Ticket::State::kFree;
    free_.push_back(ticket);
    return true;
  };
  const std::size_t count = std::erase_if(submitted_, done);
  settled_ += count;
  return count;
}

void Ledger::learn_from(Ticket& ticket) {
  if (!ticket.learn) return;
  BatchKind& kind = *ticket.kind;
  const std::chrono::nanoseconds time(ticket.device_time.load(std::memory_order_relaxed));
  if (!kind.footprint) {
    kind.footprint = ticket.peak;
    kind.device_time = time;
    return;
  }
  // A larger peak counts at once, a smaller one slowly: too low an estimate costs more.
  const Bytes decayed{kind.footprint->count -
                      minus_or_zero(*kind.footprint, ticket.peak).count / 16};
  kind.footprint = std::max(decayed, ticket.peak);
  kind.device_time += (time - kind.device_time) / 4;
}

bool Ledger::is_open(TicketRef ref) const noexcept { return refers(ref); }

bool Ledger::older_open(std::uint64_t serial) const noexcept {
  return std::ranges::any_of(open_, [serial](const Ticket* t) { return t->serial < serial; });
}

Bytes Ledger::charge(const Ticket& ticket) const noexcept {
  switch (ticket.state) {
    case Ticket::State::kOpen:
      return std::max(ticket.estimate, ticket.net);
    case Ticket::State::kSubmitted:
      return ticket.awaiting;
    case Ticket::State::kFree:
      break;
  }
  return {};
}

Bytes Ledger::charged() const noexcept {
  Bytes sum;
  for (const auto& ticket : tickets_) sum += charge(*ticket);
  return sum;
}

Bytes Ledger::unspent() const noexcept {
  Bytes sum;
  for (const Ticket* ticket : open_) sum += minus_or_zero(ticket->estimate, ticket->net);
  return sum;
}

Bytes Ledger::in_flight() const noexcept {
  Bytes sum;
  for (const Ticket* ticket : open_) sum += ticket->net;
  for (const Ticket* ticket : submitted_) sum += ticket->awaiting;
  return sum;
}

std::chrono::nanoseconds Ledger::queued_time() const noexcept {
  std::chrono::nanoseconds sum{};
  for (const Ticket* ticket : submitted_) {
    sum += ticket->kind->footprint ? ticket->kind->device_time : kUnknownTime;
  }
  return sum;
}

std::optional<Point> Ledger::point_to_await(
    const std::array<std::uint64_t, kStreamRoles>& passed) const noexcept {
  for (std::size_t i = submitted_.size() / 4; i < submitted_.size(); ++i) {
    const Ticket* ticket = submitted_[i];
    for (std::size_t role = 0; role < kStreamRoles; ++role) {
      const Point& point = ticket->points.at(role);
      if (!ticket->touched.at(role) || point.sequence == kUnrecorded) continue;
      if (point.sequence > passed.at(role)) return point;
    }
  }
  return std::nullopt;
}

std::array<bool, kStreamRoles> Ledger::unrecorded() const noexcept {
  std::array<bool, kStreamRoles> roles{};
  for (const Ticket* ticket : submitted_) {
    for (std::size_t role = 0; role < kStreamRoles; ++role) {
      if (ticket->touched.at(role) && ticket->points.at(role).sequence == kUnrecorded) {
        roles.at(role) = true;
      }
    }
  }
  return roles;
}

void Ledger::note_recorded(StreamRole role, Point point, std::uint64_t closed) noexcept {
  for (Ticket* ticket : submitted_) {
    if (ticket->closed > closed) continue;
    Point& own = ticket->points.at(index_of(role));
    if (ticket->touched.at(index_of(role)) && own.sequence == kUnrecorded) own = point;
  }
}

}  // namespace weir
