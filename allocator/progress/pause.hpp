#pragma once

// How a thread pauses between two polls of a device.

#include <chrono>
#include <thread>

#include "allocator/base/no_cancel.hpp"

namespace weir {

/// Yields at first, since waking a thread takes longer than many kernels. Once the wait is longer
/// than `spin`, sleeps 50 us at a time, which costs the host almost nothing.
class Pause {
 public:
  /// One wait. It begins with the first pause.
  explicit Pause(std::chrono::microseconds spin) noexcept : spin_(spin) {}
  /// Pauses once. Not a cancellation point.
  void operator()() {
    const auto now = std::chrono::steady_clock::now();
    if (began_ == std::chrono::steady_clock::time_point{}) began_ = now;
    if (now - began_ < spin_) {
      std::this_thread::yield();
    } else {
      const NoCancel no_cancel;
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }

 private:
  const std::chrono::microseconds spin_;
  std::chrono::steady_clock::time_point began_{};
};

}  // namespace weir
