#pragma once

// The points of one stream, and the fences that the device has not passed.

#include <cstdint>
#include <list>

#include "allocator/base/mutex.hpp"

namespace weir {

/// A point is the number of the stream's next fence, so it needs no driver call. The fence is
/// recorded later and may cover more than needed. `Fence` has a `sequence` and its owner's data.
/// Fences move as list nodes, which neither allocates nor fails. The owner's lock guards the queue.
template <typename Fence>
class FenceQueue {
 public:
  using Fences = std::list<Fence>;  ///< fences outside the queue

  /// Returns a new point's sequence.
  std::uint64_t add_point() noexcept {
    ++points_;
    return next_;
  }
  /// Returns how many points wait for the next fence.
  [[nodiscard]] std::uint32_t points() const noexcept { return points_; }
  /// Returns the sequence of the next fence.
  [[nodiscard]] std::uint64_t next() const noexcept { return next_; }
  /// Returns the highest sequence of a point or fence.
  [[nodiscard]] std::uint64_t last() const noexcept { return points_ != 0 ? next_ : next_ - 1; }
  /// Returns the sequence of the last passed fence.
  [[nodiscard]] std::uint64_t passed() const noexcept { return passed_; }
  /// Returns whether no point or fence waits for the device.
  [[nodiscard]] bool idle() const noexcept { return fences_.empty() && points_ == 0; }

  /// Moves the only fence of `made` to the end of the queue. It covers the points so far, unless
  /// `skip` gave out its number before.
  void push(Fences& made, std::uint64_t sequence) noexcept {
    made.front().sequence = sequence;
    fences_.splice(fences_.end(), made);
  }
  void push(Fences& made) noexcept { push(made, skip()); }
  /// Ends the points of the next fence without a fence. Returns its number.
  std::uint64_t skip() noexcept {
    points_ = 0;
    return next_++;
  }

  /// Moves the oldest fence to the front of `to` if `is_passed(fence)`. Returns whether it did.
  /// Clang cannot see that the lock, which `is_passed` needs too, is held.
  template <typename IsPassed>
  bool take_passed(Fences& to, const IsPassed& is_passed) WEIR_NO_THREAD_SAFETY_ANALYSIS {
    if (fences_.empty() || !is_passed(fences_.front())) return false;
    passed_ = fences_.front().sequence;
    to.splice(to.begin(), fences_, fences_.begin());
    return true;
  }

  /// Recorded and not passed, in order.
  [[nodiscard]] Fences& fences() noexcept { return fences_; }
  [[nodiscard]] const Fences& fences() const noexcept { return fences_; }

 private:
  std::uint64_t next_ = 1;
  std::uint64_t passed_ = 0;
  std::uint32_t points_ = 0;
  Fences fences_;
};

}  // namespace weir
