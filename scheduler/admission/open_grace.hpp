#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "allocator/base/time_after.hpp"

namespace weir {

/// The longest wait of one batch for open batches. It begins again whenever their number changes,
/// since a batch that closes may be the one that was waited for. Not thread-safe.
class OpenGrace {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// Begins the grace if `open`, the number of open batches, is not what it was at the last call.
  /// None may be open: the last one can close between the decision to wait and the wait.
  void observe(std::uint64_t open, Time now, std::chrono::nanoseconds grace) {
    if (open_ == open) return;
    open_ = open;
    end_ = time_after(now, grace);
  }

  /// Ends the grace; the next observe() begins another.
  void reset() { open_.reset(); }

  [[nodiscard]] Time end() const { return end_; }
  [[nodiscard]] bool over(Time now) const { return open_ && now >= end_; }

 private:
  std::optional<std::uint64_t> open_;  ///< open batches at the last call; none: not begun
  Time end_;
};

}  // namespace weir
