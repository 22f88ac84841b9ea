#pragma once

// A current amount and its peak.

#include <algorithm>
#include <cstdint>
#include <mutex>

namespace weir::testing {

/// Thread-safe.
class Level {
 public:
  void rise(std::uint64_t by) {
    const std::lock_guard lock(mutex_);
    now_ += by;
    peak_ = std::max(peak_, now_);
  }
  void fall(std::uint64_t by) {
    const std::lock_guard lock(mutex_);
    now_ -= by;
  }
  [[nodiscard]] std::uint64_t now() const {
    const std::lock_guard lock(mutex_);
    return now_;
  }
  [[nodiscard]] std::uint64_t peak() const {
    const std::lock_guard lock(mutex_);
    return peak_;
  }

 private:
  mutable std::mutex mutex_;
  std::uint64_t now_ = 0;
  std::uint64_t peak_ = 0;
};

}  // namespace weir::testing
