#include "scheduler/admission/fair_line.hpp"

#include <algorithm>
#include <atomic>
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
  since_another_ =
      served_.at((next_served_ - 1) % kRecent) == place.producer ? since_another_ + 1 : 1;
  served_.at(next_served_++ % kRecent) = place.producer;
  leave(place);
}

bool FairLine::is_anybody_away(const Place& place) const noexcept {
  const bool is_alone = since_another_ >= kRecent && served_.front() == place.producer;
  return !is_alone && std::ranges::any_of(served_, [&](std::uint64_t producer) {
    return producer != 0 && producer != place.producer &&
           std::ranges::count(served_, producer) >= 2 &&
           std::ranges::count(waiting_, producer, &Place::producer) == 0;
  });
}

void FairLine::leave(Place& place) noexcept {
  std::erase(waiting_, &place);
  if (first_ != &place) return;
  const auto first = std::ranges::min_element(waiting_, is_before);
  first_ = first != waiting_.end() ? *first : nullptr;
}

std::uint64_t this_thread_number() noexcept {
  static std::atomic<std::uint64_t> last{0};
  thread_local const std::uint64_t kNumber = ++last;
  return kNumber;
}

}  // namespace weir
