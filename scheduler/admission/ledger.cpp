#include "scheduler/admission/ledger.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "scheduler/admission/batch_timeline.hpp"

namespace weir {
namespace {

bool refers(TicketRef ref) { return ref.ticket != nullptr && ref.ticket->serial == ref.serial; }

bool refers_to_open(TicketRef ref) {
  return refers(ref) && ref.ticket->state == Ticket::State::kOpen;
}

/// Returns how much of its peak it has given back by now.
Bytes given_back(const Ticket& ticket) { return minus_or_zero(ticket.peak, ticket.net); }

std::int64_t nanoseconds_of(std::chrono::steady_clock::time_point time) {
  return std::chrono::nanoseconds(time.time_since_epoch()).count();
}

StreamTimes times_of(const Ticket& ticket) {
  StreamTimes times{};
  for (std::size_t role = 0; role < kStreamRoles; ++role) {
    times.at(role) =
        std::chrono::nanoseconds(ticket.device_time.at(role).load(std::memory_order_relaxed));
  }
  return times;
}

}  // namespace

void Ticket::note_ran(StreamRole role, const TaskTime& time) noexcept {
  const std::size_t i = index_of(role);
  const auto relaxed = std::memory_order_relaxed;
  if (device_time.at(i).fetch_add(time.device_time.count(), relaxed) == 0) {
    gap.at(i).store(time.gap.count(), relaxed);
    starved.at(i).store(time.starved.count(), relaxed);
    begun.at(i).store(nanoseconds_of(time.end) - time.device_time.count(), relaxed);
  }
  ended.at(i).store(nanoseconds_of(time.end), relaxed);
}

BatchKind& Ledger::kind(std::string_view name) {
  if (last_kind_ != nullptr && last_kind_->name == name) return *last_kind_;
  auto found = kinds_.find(name);
  if (found == kinds_.end()) {
    auto kind = std::make_unique<BatchKind>();
    kind->name = name;
    found = kinds_.emplace(kind->name, std::move(kind)).first;
  }
  return *(last_kind_ = found->second.get());
}

std::optional<Bytes> Ledger::expected(const BatchKind& kind,
                                      std::optional<Bytes> hint) const noexcept {
  if (kind.footprint) return kind.footprint;
  return hint ? hint : largest_known();
}

std::optional<Bytes> Ledger::largest_known() const noexcept {
  Bytes largest;
  for (const BatchKind* kind : recent_) {
    if (kind == nullptr) break;
    // The first batch of a kind may keep memory of its own, which says nothing about other kinds.
    largest = std::max(largest, kind->given_back ? *kind->footprint : given_back(*kind->last));
  }
  return largest.count == 0 ? std::nullopt : std::optional(largest);
}

std::optional<StreamTimes> Ledger::longest_known() const noexcept {
  std::optional<StreamTimes> longest;
  for (const BatchKind* kind : recent_) {
    if (kind == nullptr) break;
    if (!longest) longest.emplace();
    for (std::size_t role = 0; role < kStreamRoles; ++role) {
      longest->at(role) = std::max(longest->at(role), kind->device_time.at(role));
    }
  }
  return longest;
}

Ticket& Ledger::open(BatchKind& kind, Bytes estimate, CallSite where, std::uint32_t number) {
  if (free_.empty()) {
    // Reserves room for every ticket in every list, so that no later step can fail.
    const std::size_t count = tickets_.size() + 1;
    for (auto* list : {&free_, &open_, &submitted_}) list->reserve(count);
    settled_unheard_.reserve(count);
    queues_.reserve(count);
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
  ticket.producer = 0;
  ticket.estimate = estimate;
  ticket.net = ticket.peak = ticket.awaiting = {};
  ticket.closed_before = closed_;
  ticket.found_idle.reset();
  ticket.learn = true;
  ticket.lapsed = false;
  ticket.touched = {};
  ticket.released.reset();
  ticket.credit = {};
  ticket.waited_for_memory = false;
  for (auto* times :
       {&ticket.device_time, &ticket.gap, &ticket.starved, &ticket.begun, &ticket.ended}) {
    for (auto& time : *times) time.store(0, std::memory_order_relaxed);
  }
  return ticket;
}

void Ledger::note_allocated(TicketRef ref, Bytes bytes, bool waited) {
  if (!refers_to_open(ref)) return;
  if (waited) note_waited(ref);
  ref.ticket->net += bytes;
  ref.ticket->peak = std::max(ref.ticket->peak, ref.ticket->net);
  ref.ticket->closed_before = closed_;
  ref.ticket->found_idle.reset();
  ref.ticket->lapsed = false;
}

void Ledger::note_waited(TicketRef ref) {
  if (!refers_to_open(ref)) return;
  ref.ticket->released.reset();
  ref.ticket->waited_for_memory = true;
}

void Ledger::note_synchronized(TicketRef ref) {
  if (refers_to_open(ref)) ref.ticket->released.reset();
}

void Ledger::note_freed(TicketRef ref, Bytes bytes, bool awaiting) {
  if (!refers(ref)) return;
  // Not below zero: allocations of another thread after the batch closed were not counted.
  ref.ticket->net = minus_or_zero(ref.ticket->net, bytes);
  if (awaiting && ref.ticket->state == Ticket::State::kOpen) ref.ticket->awaiting += bytes;
}

void Ledger::close(Ticket& ticket, const std::array<Point, kStreamRoles>& points, bool learn) {
  std::erase(open_, &ticket);
  ticket.state = Ticket::State::kSubmitted;
  ticket.points = points;
  ticket.learn = learn;
  ticket.closed = ++closed_;
  submitted_.push_back(&ticket);
  (void)note_batch(TimelineKind::kClose, ticket);
}

void Ledger::settle(Ticket& ticket) {
  if (!note_batch(TimelineKind::kSettle, ticket)) keep_unheard(ticket);
  ticket.state = Ticket::State::kSettled;
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

void Ledger::learn_from(Ticket& ticket) {
  BatchKind& kind = *ticket.kind;
  const StreamTimes times = times_of(ticket);
  const bool first = !kind.footprint;
  for (std::size_t role = 0; role < kStreamRoles; ++role) {
    std::chrono::nanoseconds& average = kind.device_time.at(role);
    average = first ? times.at(role) : average + (times.at(role) - average) / 4;
  }
  if (kind.last != nullptr) {
    const Bytes largest = std::max(kind.given_back.value_or(Bytes{}), given_back(*kind.last));
    // A larger value counts at once and a smaller one slowly: too low an estimate costs more.
    kind.given_back = Bytes{largest.count - minus_or_zero(largest, ticket.peak).count / 16};
    free_.push_back(kind.last);
  }
  kind.last = &ticket;  // kept to see what it has given back when the next one settles
  kind.footprint = std::max(kind.given_back.value_or(Bytes{}), ticket.peak);
  note_recent(kind);
}

void Ledger::note_recent(BatchKind& kind) noexcept {
  if (std::exchange(kind.recent, true)) return;
  BatchKind*& place = recent_.at(next_recent_++ % kKnownKinds);
  if (place != nullptr) place->recent = false;
  place = &kind;
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

bool Ledger::keeps_for_open() const noexcept {
  return !std::ranges::all_of(open_, &Ticket::lapsed);
}

const Ticket* Ledger::take_forgotten(std::chrono::steady_clock::time_point now,
                                     std::chrono::nanoseconds patience) noexcept {
  const auto forgotten = std::ranges::find_if(open_, [&](Ticket* ticket) {
    if (ticket->lapsed || closed_ - ticket->closed_before < kManyBatches) return false;
    if (!ticket->found_idle) ticket->found_idle = now;
    return now - *ticket->found_idle >= patience;
  });
  if (forgotten == open_.end()) return nullptr;
  (*forgotten)->lapsed = true;
  return *forgotten;
}

std::chrono::nanoseconds Ledger::sum_of_times(std::span<Ticket* const> tickets,
                                              std::span<Ticket* const> more) const noexcept {
  if (tickets.empty() && more.empty()) return {};
  StreamTimes sum{};
  std::optional<StreamTimes> guess;
  for (const std::span<Ticket* const> part : {tickets, more}) {
    for (const Ticket* ticket : part) {
      const StreamTimes* times = &ticket->kind->device_time;
      if (ticket->lapsed) continue;
      if (!ticket->kind->footprint) {
        if (!guess) guess = longest_known();
        if (!guess) return kUnknownTime;
        times = &*guess;
      }
      for (std::size_t role = 0; role < kStreamRoles; ++role) sum.at(role) += times->at(role);
    }
  }
  return *std::ranges::max_element(sum);
}

std::chrono::nanoseconds Ledger::queued_behind(
    const std::array<std::uint64_t, kStreamRoles>& passed) const noexcept {
  return sum_of_times(behind(passed));
}

std::chrono::nanoseconds Ledger::queued_and_open() const noexcept {
  return sum_of_times(behind({}), open_);
}

std::span<Ticket* const> Ledger::behind(
    const std::array<std::uint64_t, kStreamRoles>& passed) const noexcept {
  const auto runs = std::ranges::find_if(
      submitted_, [&passed](const Ticket* ticket) { return !ticket->passed_all(passed); });
  if (runs == submitted_.end()) return {};
  return std::span(runs + 1, submitted_.end());
}

std::span<const Ledger::ProducerQueue> Ledger::queues() const noexcept {
  std::optional<StreamTimes> guess;
  queues_.clear();  // keeps the memory: open() has reserved one for each ticket
  for (const Ticket* ticket : submitted_) {
    auto queue = std::ranges::lower_bound(queues_, ticket->producer, {}, &ProducerQueue::producer);
    if (queue == queues_.end() || queue->producer != ticket->producer) {
      queue = queues_.insert(queue, {.producer = ticket->producer});
    }
    StreamTimes times = ticket->kind->device_time;
    if (!ticket->kind->footprint) {
      if (!guess) guess = longest_known().value_or(StreamTimes{kUnknownTime});
      times = *guess;
    }
    for (std::size_t role = 0; role < kStreamRoles; ++role) queue->times.at(role) += times.at(role);
    queue->queued = *std::ranges::max_element(queue->times);
  }
  return queues_;
}

std::chrono::nanoseconds Ledger::expected_time(const BatchKind& kind) const noexcept {
  if (kind.footprint) return *std::ranges::max_element(kind.device_time);
  const auto guess = longest_known();
  return guess ? *std::ranges::max_element(*guess) : kUnknownTime;
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

std::optional<std::chrono::steady_clock::time_point> Ledger::ended(
    const Point& point) const noexcept {
  const auto ends = [&point](const Ticket* ticket) {
    return std::ranges::find(ticket->points, point) != ticket->points.end();
  };
  const auto found = std::ranges::find_if(submitted_, ends);
  if (found == submitted_.end()) return std::nullopt;
  std::int64_t last = 0;
  for (const auto& ended : (*found)->ended) {
    last = std::max(last, ended.load(std::memory_order_relaxed));
  }
  if (last == 0) return std::nullopt;
  return std::chrono::steady_clock::time_point(std::chrono::nanoseconds(last));
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
