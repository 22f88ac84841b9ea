#pragma once

// A limit on queued bytes that adapts, by the rules of Linux's dynamic queue limits (T. Herbert
// 2011, "byte queue limits"): it grows when the queue ran dry although more was wanted, and shrinks
// by the least slack of the last second.

#include <algorithm>
#include <cstdint>
#include <optional>

#include "bench/simulate/jitter.hpp"

namespace weir::simulate {

class DynamicLimit {
 public:
  /// The sender may queue as long as this is false, so one object may go over the limit.
  [[nodiscard]] bool is_full() const noexcept { return queued_ > allowed_; }
  [[nodiscard]] std::uint64_t limit() const noexcept { return limit_; }
  void queue(std::uint64_t count) noexcept {
    queued_ += count;
    last_ = count;
  }
  /// `count` more have left the queue.
  void complete(std::uint64_t count, Time now) noexcept {
    const std::uint64_t done = done_ + count;
    const std::uint64_t left = queued_ - done;
    const std::uint64_t left_before = queued_before_ - done_;
    const bool all_before_done = done >= queued_before_;
    std::uint64_t over = above(queued_ - done_, limit_);
    std::uint64_t limit = limit_;
    if ((over > 0 && left == 0) || (over_before_ > 0 && all_before_done)) {
      limit += above(done, queued_before_) + over_before_;
      least_slack_.reset();
      slack_since_ = now;
    } else if (left > 0 && left_before > 0 && !all_before_done) {
      const std::uint64_t unused = above(limit + over_before_, 2 * count);
      const std::uint64_t last = over_before_ > 0 ? above(last_before_, over_before_) : 0;
      const std::uint64_t slack = std::max(unused, last);
      least_slack_ = std::min(least_slack_.value_or(slack), slack);
      if (now - slack_since_ > std::chrono::seconds(1)) {
        limit = above(limit, *least_slack_);
        least_slack_.reset();
        slack_since_ = now;
      }
    }
    if (limit != limit_) over = 0;
    limit_ = limit;
    allowed_ = limit + done;
    over_before_ = over;
    last_before_ = last_;
    done_ = done;
    queued_before_ = queued_;
  }

 private:
  [[nodiscard]] static std::uint64_t above(std::uint64_t a, std::uint64_t b) noexcept {
    return a > b ? a - b : 0;
  }

  std::uint64_t limit_ = 0;
  std::uint64_t allowed_ = 0;  ///< sum of all that may have been queued
  std::uint64_t queued_ = 0;   ///< sums
  std::uint64_t done_ = 0;
  std::uint64_t last_ = 0;  ///< size of the last object
  // At the last completion:
  std::uint64_t queued_before_ = 0;
  std::uint64_t over_before_ = 0;
  std::uint64_t last_before_ = 0;
  std::optional<std::uint64_t> least_slack_;
  Time slack_since_{};
};

}  // namespace weir::simulate
