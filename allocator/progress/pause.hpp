#pragma once

/// @file
/// What a thread does between two looks at a device that it waits for.

#include <chrono>
#include <thread>

#include "allocator/base/no_cancel.hpp"

namespace weir {

/// Yields at first, since waking a thread takes longer than many a kernel. Sleeps 50 us at a time
/// once the wait is longer than `spin`, which costs next to no time of the host.
class Pause {
 public:
  /// One wait, which begins with the first pause.
  explicit Pause(std::chrono::microseconds spin) noexcept : spin_(spin) {}
  /// Returns after a moment. A thread is not cancelled in it.
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
