#include "scheduler/admission/run_ahead_limit.hpp"

#include <utility>

namespace weir {

void RunAheadLimit::note_closed(const StreamQueue& queue) noexcept {
  StreamQueue& full = full_.at(queue.role);
  full.time = std::max(full.time, queue.time);
  full.all = std::max(full.all, queue.all);
  // A long batch that begins to run leaves the first, and the second only when it is done.
  need(std::min(full.time - queue.time, full.all - queue.all));
  window_.most = std::max(window_.most, queue.time);
}

void RunAheadLimit::note_ran(const BatchRun& run) noexcept {
  const Duration longer = run.at(index_of(StreamRole::kCompute2)).device_time -
                          run.at(index_of(StreamRole::kCompute)).device_time;
  apart_.at(0) = std::max(apart_.at(0) + longer, Duration{});
  apart_.at(1) = std::max(apart_.at(1) - longer, Duration{});
  need(std::min(apart_.at(0), apart_.at(1)));
}

void RunAheadLimit::note_settled(Duration device_time, Duration lost) noexcept {
  average_ += (device_time - average_) / (average_.count() != 0 ? 16 : 1);
  may_lose_ = std::min(may_lose_ + device_time / kLostPart, average_ * kMostLostBatches) - lost;
  may_lose_ = std::max(may_lose_, -kFirstTime);
  ++window_.batches;
  if (lost.count() != 0 && may_lose_.count() < 0) {
    grow(std::min(lost, -may_lose_));
  } else if (window_.batches >= (is_first_ ? std::max(first_, kWindow) : kWindow)) {
    fall();
  } else {
    return;
  }
  if (is_first_) return;
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
  lost_since_ += lost;
  has_grown_ = true;
  note_drained();                                                        // it has to fill again
  if (is_first_ && window_.batches < std::min(first_, kWindow)) return;  // a poor average
  end_first();
  need(held_at_ + lost_since_);
  limit_ = std::max(limit_, std::min(kept(), held_at_ + lost_since_ * kGrowth));
}

void RunAheadLimit::fall() noexcept {
  end_first();
  needed_ -= needed_ / kFadePart;
  if (!window_.held_back) note_drained();  // what it was no longer counts
  const bool was_calm = std::exchange(is_calm_, window_.held_back && !window_.needed_more);
  if (!window_.held_back || may_lose_.count() < 0) return;
  limit_ = std::min(limit_, window_.most);
  const Duration slack = std::max(limit_ - std::max(kept() - may_lose_, Duration{}), Duration{});
  limit_ -= was_calm && is_calm_ ? slack : slack / 2;
}

}  // namespace weir
