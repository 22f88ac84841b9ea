#include "scheduler/admission/fair_line.hpp"

#include <algorithm>
#include <tuple>

namespace weir {
namespace {

std::uint64_t sum_or_most(std::uint64_t tag, Bytes bytes) {
  return tag + std::min(bytes.count, UINT64_MAX - tag);
}

/// Returns by how much a batch moves the end of its producer: at least 1, so that it counts.
Bytes virtual_bytes(Bytes bytes, std::uint32_t weight) {
  return std::max(Bytes{bytes.count / weight}, Bytes{1});
}

}  // namespace

void FairLine::join(Place& place, std::uint64_t producer, Bytes bytes, std::uint32_t weight) {
  accounts_.reserve(accounts_.size() + waiting_.size() + 1);  // one for each served place
  waiting_.push_back(&place);
  Account* account = find(producer);
  place = {.producer = producer,
           .weight = weight,
           .bytes = bytes,
           .tag = std::max(virtual_time_, account != nullptr ? account->end : 0),
           .arrival = ++arrivals_};
  if (account == nullptr) return;
  account->returned = account->waiting = true;
  if (account->late != 0) --account->late;
}

FairLine::Account* FairLine::find(std::uint64_t producer) noexcept {
  const auto account = std::ranges::find(accounts_, producer, &Account::producer);
  return account != accounts_.end() ? &*account : nullptr;
}

FairLine::Place* FairLine::first(const MayGo& may) const noexcept {
  Place* first = nullptr;
  for (Place* place : waiting_) {
    if (may && !may(*place)) continue;
    if (first == nullptr ||
        std::tie(place->tag, place->arrival) < std::tie(first->tag, first->arrival)) {
      first = place;
    }
  }
  return first;
}

std::uint64_t FairLine::yields_to(const Place& place, const MayHoldUp& may) const noexcept {
  const std::uint64_t most_behind = virtual_bytes(place.bytes, place.weight).count;
  const auto found = std::ranges::find_if(accounts_, [&](const Account& account) {
    return account.producer != place.producer && account.end < place.tag &&
           place.tag - account.end <= most_behind && account.late == 0 &&
           (account.open || (account.returned && !account.waiting)) &&
           (!may || may(account.producer, account.weight));
  });
  return found != accounts_.end() ? found->producer : 0;
}

void FairLine::note_late(std::uint64_t producer) noexcept {
  Account* account = find(producer);
  if (account == nullptr) return;
  account->fine = std::clamp(2 * account->fine, std::uint32_t{2}, kMostLate);
  account->late = account->fine;
}

std::uint64_t FairLine::weights() const noexcept {
  std::uint64_t sum = 0;
  for (const Account& account : accounts_) sum += account.waiting ? 0 : account.weight;
  for (const Place* place : waiting_) sum += place->weight;
  return sum;
}

void FairLine::serve(Place& place) noexcept {
  std::erase(waiting_, &place);
  virtual_time_ = std::max(virtual_time_, place.tag);
  Account* account = find(place.producer);
  if (account == nullptr) account = &accounts_.emplace_back(Account{.producer = place.producer});
  account->weight = place.weight;
  account->last = virtual_bytes(place.bytes, place.weight);
  account->end = sum_or_most(place.tag, account->last);
  account->open = true;
  account->waiting = false;
  // For the order an account that ended before now equals no account. Threads come and go, so drop
  // it, but only a batch later: a producer that is back by then is away for a short time. One that
  // was late is remembered for longer.
  const Bytes moved = account->last;
  std::erase_if(accounts_, [this, moved](const Account& a) {
    if (a.open || a.waiting || a.end > virtual_time_) return false;
    const std::uint64_t ago = virtual_time_ - a.end;
    return a.fine == 0 ? ago >= a.last.count : ago / kMostLate >= std::max(a.last, moved).count;
  });
}

void FairLine::correct(std::uint64_t producer, Bytes expected, Bytes held) noexcept {
  Account* account = find(producer);
  if (account == nullptr) return;
  account->open = false;
  const Bytes before = virtual_bytes(expected, account->weight);
  account->last = virtual_bytes(held, account->weight);
  account->end = sum_or_most(account->end, minus_or_zero(account->last, before));
  account->end -= std::min(account->end, minus_or_zero(before, account->last).count);
}

void FairLine::leave(Place& place) noexcept {
  std::erase(waiting_, &place);
  if (Account* account = find(place.producer)) account->waiting = false;
}

}  // namespace weir
