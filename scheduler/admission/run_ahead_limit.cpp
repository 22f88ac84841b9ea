#include "scheduler/admission/run_ahead_limit.hpp"

#include <utility>

namespace weir {

void RunAheadLimit::note_settled(Duration device_time, Duration lost) noexcept {
  average_ += (device_time - average_) / (average_.count() != 0 ? 16 : 1);
  may_lose_ = std::min(may_lose_ + device_time / kLostPart, average_ * kMostLostBatches) - lost;
  ++window_.batches;
  if (lost.count() != 0 && may_lose_.count() < 0) {
    grow(std::min(lost, -may_lose_));
  } else if (window_.batches >= (is_first_ ? std::max(first_, kWindow) : kWindow)) {
    fall();
  } else {
    return;
  }
  most_ = std::max(most_, limit_);
  window_ = {};
}

void RunAheadLimit::end_first() noexcept {
  if (!std::exchange(is_first_, false)) return;
  // One batch runs, and one is being admitted; the others are queued.
  limit_ = std::min<Duration>(average_ * static_cast<std::int64_t>(first_ - 2), kFirstTime);
  held_at_ = limit_;
}

void RunAheadLimit::grow(Duration lost) noexcept {
  end_first();
  lost_since_ += lost;
  need(held_at_ + lost_since_);
  limit_ = std::max(limit_, std::min(kept(), held_at_ + lost_since_ * kGrowth));
  has_grown_ = true;
  is_calm_ = false;
  note_drained();  // it has to fill again
}

void RunAheadLimit::fall() noexcept {
  end_first();
  needed_ -= needed_ / kFadePart;
  const bool falls_at_once = is_calm_ && !window_.needed_more;
  is_calm_ = !window_.needed_more;
  if (!window_.held_back || may_lose_.count() < 0) return;
  limit_ = std::min(limit_, window_.most);
  const Duration slack = std::max(limit_ - std::max(kept() - may_lose_, Duration{}), Duration{});
  limit_ -= falls_at_once ? slack : slack / 2;
}

}  // namespace weir
