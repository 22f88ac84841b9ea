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
  const auto account = std::ranges::find(accounts_, producer, &Account::producer);
  const bool returned = account != accounts_.end();
  const std::uint64_t end = returned ? account->end : 0;
  if (returned) account->returned = account->waiting = true;
  place = {.producer = producer,
           .weight = weight,
           .bytes = bytes,
           .tag = std::max(virtual_time_, end),
           .arrival = ++arrivals_};
  accounts_.reserve(accounts_.size() + waiting_.size() + 1);  // one for each served place
  waiting_.push_back(&place);
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

bool FairLine::yields(const Place& place, const MayHoldUp& may) const noexcept {
  const std::uint64_t most_behind = virtual_bytes(place.bytes, place.weight).count;
  return std::ranges::any_of(accounts_, [&](const Account& account) {
    return account.producer != place.producer && account.end < place.tag &&
           place.tag - account.end <= most_behind &&
           (account.open || (account.returned && !account.waiting)) &&
           (!may || may(account.producer, account.weight));
  });
}

void FairLine::serve(Place& place) noexcept {
  std::erase(waiting_, &place);
  virtual_time_ = std::max(virtual_time_, place.tag);
  const std::uint64_t end = sum_or_most(place.tag, virtual_bytes(place.bytes, place.weight));
  const auto account = std::ranges::find(accounts_, place.producer, &Account::producer);
  if (account == accounts_.end()) {
    accounts_.push_back(
        {.producer = place.producer, .weight = place.weight, .end = end, .open = true});
  } else {
    account->weight = place.weight;
    account->end = end;
    account->open = true;
    account->waiting = false;
  }
  // An account that ended before now equals no account. Threads come and go, so drop it.
  std::erase_if(accounts_, [this](const Account& a) { return !a.open && a.end <= virtual_time_; });
}

void FairLine::correct(std::uint64_t producer, Bytes expected, Bytes held) noexcept {
  const auto account = std::ranges::find(accounts_, producer, &Account::producer);
  if (account == accounts_.end()) return;
  account->open = false;
  const Bytes expected_end = virtual_bytes(expected, account->weight);
  const Bytes held_end = virtual_bytes(held, account->weight);
  account->end = sum_or_most(account->end, minus_or_zero(held_end, expected_end));
  account->end -= std::min(account->end, minus_or_zero(expected_end, held_end).count);
}

void FairLine::leave(Place& place) noexcept {
  std::erase(waiting_, &place);
  const auto account = std::ranges::find(accounts_, place.producer, &Account::producer);
  if (account != accounts_.end()) account->waiting = false;
}

}  // namespace weir
