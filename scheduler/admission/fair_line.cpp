#include "scheduler/admission/fair_line.hpp"

#include <algorithm>
#include <tuple>

namespace weir {
namespace {

std::uint64_t sum_or_most(std::uint64_t tag, Bytes bytes) {
  return tag + std::min(bytes.count, UINT64_MAX - tag);
}

}  // namespace

void FairLine::join(Place& place, std::uint64_t producer, Bytes bytes) {
  const auto account = std::ranges::find(accounts_, producer, &Account::producer);
  const std::uint64_t end = account == accounts_.end() ? 0 : account->end;
  place = {.producer = producer,
           .bytes = bytes,
           .tag = std::max(virtual_time_, end),
           .arrival = ++arrivals_};
  accounts_.reserve(accounts_.size() + waiting_.size() + 1);  // one for each served place
  waiting_.push_back(&place);
}

FairLine::Place* FairLine::first() const noexcept {
  const auto earlier = [](const Place* a, const Place* b) {
    return std::tie(a->tag, a->arrival) < std::tie(b->tag, b->arrival);
  };
  const auto first = std::ranges::min_element(waiting_, earlier);
  return first == waiting_.end() ? nullptr : *first;
}

bool FairLine::yields(const Place& place) const noexcept {
  return std::ranges::any_of(accounts_, [&place](const Account& account) {
    return account.open && account.producer != place.producer && account.end < place.tag &&
           place.tag - account.end <= place.bytes.count;
  });
}

void FairLine::serve(Place& place) noexcept {
  std::erase(waiting_, &place);
  virtual_time_ = std::max(virtual_time_, place.tag);
  const std::uint64_t end = sum_or_most(place.tag, std::max(place.bytes, Bytes{1}));
  const auto account = std::ranges::find(accounts_, place.producer, &Account::producer);
  if (account == accounts_.end()) {
    accounts_.push_back({.producer = place.producer, .end = end, .open = true});
  } else {
    account->end = end;
    account->open = true;
  }
  // An account that ended before now equals no account. Threads come and go, so drop it.
  std::erase_if(accounts_, [this](const Account& a) { return !a.open && a.end <= virtual_time_; });
}

void FairLine::correct(std::uint64_t producer, Bytes expected, Bytes held) noexcept {
  const auto account = std::ranges::find(accounts_, producer, &Account::producer);
  if (account == accounts_.end()) return;
  account->open = false;
  account->end = sum_or_most(account->end, minus_or_zero(held, expected));
  account->end -= std::min(account->end, minus_or_zero(expected, held).count);
}

void FairLine::leave(Place& place) noexcept { std::erase(waiting_, &place); }

}  // namespace weir
