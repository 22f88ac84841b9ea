#include "scheduler/fair_line.hpp"

#include <algorithm>
#include <tuple>

namespace weir {

void FairLine::join(Place& place, std::uint64_t producer, Bytes bytes) {
  const auto account = std::ranges::find(accounts_, producer, &Account::producer);
  const std::uint64_t end = account == accounts_.end() ? 0 : account->end;
  place = {.producer = producer,
           .bytes = bytes,
           .tag = std::max(virtual_time_, end),
           .arrival = ++arrivals_};
  waiting_.push_back(&place);
}

const FairLine::Place* FairLine::first() const noexcept {
  const auto earlier = [](const Place* a, const Place* b) {
    return std::tie(a->tag, a->arrival) < std::tie(b->tag, b->arrival);
  };
  const auto first = std::ranges::min_element(waiting_, earlier);
  return first == waiting_.end() ? nullptr : *first;
}

void FairLine::serve(Place& place) {
  leave(place);
  virtual_time_ = std::max(virtual_time_, place.tag);
  const std::uint64_t end = place.tag + std::max<std::uint64_t>(place.bytes.count, 1);
  const auto account = std::ranges::find(accounts_, place.producer, &Account::producer);
  if (account == accounts_.end()) {
    accounts_.push_back({place.producer, end});
  } else {
    account->end = end;
  }
  // An account that ended before now says no more than no account; threads come and go.
  std::erase_if(accounts_, [this](const Account& a) { return a.end <= virtual_time_; });
}

void FairLine::leave(Place& place) noexcept { std::erase(waiting_, &place); }

}  // namespace weir
