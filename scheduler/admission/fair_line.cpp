#include "scheduler/admission/fair_line.hpp"

#include <algorithm>
#include <tuple>

namespace weir {
namespace {

bool is_before(const FairLine::Place* a, const FairLine::Place* b) noexcept {
  return std::tie(a->tag, a->arrival) < std::tie(b->tag, b->arrival);
}

}  // namespace

void FairLine::join(Place& place, std::uint64_t producer, Bytes bytes, std::uint32_t weight) {
  waiting_.push_back(&place);
  if (bytes.count != 0) last_bytes_ = bytes;
  const Virtual share = (Virtual{last_bytes_.value_or(Bytes{1}).count} << 32U) / weight;
  place = {.producer = producer,
           .bytes = bytes,
           .share = share,
           .tag = virtual_time_ + share,
           .arrival = ++arrivals_};
  if (first_ == nullptr || is_before(&place, first_)) first_ = &place;
}

void FairLine::serve(Place& place) noexcept {
  virtual_time_ = std::max(virtual_time_, place.tag);
  leave(place);
  note_served(place.producer);
}

void FairLine::pass(std::uint64_t producer, Bytes bytes) noexcept {
  if (bytes.count != 0) last_bytes_ = bytes;
  note_served(producer);
}

void FairLine::note_served(std::uint64_t producer) noexcept {
  const bool is_alone = served(0).producer == producer && waiting_.empty();
  alone_ = is_alone ? alone_ + 1 : 0;
  served_.at(next_served_++ % kRecent) = {.producer = producer, .others = waiting_.size()};
}

bool FairLine::is_anybody_away(const Place& place) const noexcept {
  if (alone_ >= kRecent && served(0).producer == place.producer) return false;
  std::size_t others = 0;  // at one time
  std::size_t since = 0;   // its own last turn
  bool had_turn = false;
  for (std::size_t i = 0; i < kRecent; ++i) {
    others = std::max(others, served(i).others);
    had_turn = had_turn || served(i).producer == place.producer;
    if (!had_turn) ++since;
  }
  if (had_turn && since + waiting_.size() < others + (place.is_in_line() ? 1 : 0)) return true;
  return std::ranges::any_of(served_, [&](const Served& one) {
    return one.producer != 0 && one.producer != place.producer &&
           std::ranges::count(served_, one.producer, &Served::producer) >= 2 &&
           std::ranges::count(waiting_, one.producer, &Place::producer) == 0;
  });
}

void FairLine::leave(Place& place) noexcept {
  if (!place.is_in_line()) return;
  std::erase(waiting_, &place);
  place.arrival = 0;
  if (first_ != &place) return;
  const auto first = std::ranges::min_element(waiting_, is_before);
  first_ = first != waiting_.end() ? *first : nullptr;
}

}  // namespace weir
