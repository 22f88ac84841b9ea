#include "scheduler/admission/run_ahead_limit.hpp"

#include <utility>

namespace weir {

void RunAheadLimit::note_settled(Duration device_time, Duration lost) noexcept {
  average_ += (device_time - average_) / (average_.count() != 0 ? 16 : 1);
  may_lose_ = std::min(may_lose_ + device_time / kLostPart, average_ * kMostLostBatches) - lost;
  ++window_.batches;
  if (lost.count() != 0 && may_lose_.count() < 0) {
    grow(std::min(lost, -may_lose_));
  } else if (window_.batches >= (is_first_ ? kFirstWindow : kWindow)) {
    fall();
  } else {
    return;
  }
  most_ = std::max(most_, limit_);
  window_ = {};
}

void RunAheadLimit::end_first() noexcept {
  // One batch runs, and one is being admitted; the others are queued.
  if (!std::exchange(is_first_, false)) return;
  limit_ = std::min<Duration>(average_ * static_cast<std::int64_t>(first_ - 2), kFirstTime);
}

void RunAheadLimit::grow(Duration lost) noexcept {
  end_first();
  limit_ += std::max(lost, std::min(limit_, lost * kGrowth));
  has_grown_ = true;
  note_drained();  // it has to fill again
}

void RunAheadLimit::fall() noexcept {
  end_first();
  drain_ -= drain_ / kFadePart;
  if (!window_.held_back || may_lose_.count() < 0) return;
  limit_ = std::min(limit_, window_.most);
  const Duration kept = std::max(drain_ * kDrains - may_lose_, Duration{});
  limit_ -= std::max(limit_ - kept, Duration{}) / kFallPart;
}

}  // namespace weir
