#pragma once

// How threads wait for a device: pauses between two polls, and how often a stream gets an event
// that a thread sleeps on.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <thread>

#include "allocator/base/calling_thread.hpp"

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

/// Such an event interrupts the host, for which the device takes more than a microsecond: with one
/// behind each operation an H100 needed 2.9 us instead of 1.3 us for a small kernel. And its queue
/// took 56 of them, where it takes a thousand operations (docs/cuda.md). So they are about kApart
/// of the device's time apart, and kMost of a stream are open at most. Operations of that length or
/// longer get one each while there is room.
class SleepSpacing {
 public:
  static constexpr std::chrono::nanoseconds kApart = std::chrono::microseconds(200);
  /// Of each stream: a device has four, and others may use the same GPU.
  static constexpr std::size_t kMost = 8;

  /// Returns whether the operation that is enqueued now should have one, beside so many that the
  /// device has not passed. One thread at a time.
  [[nodiscard]] bool due(std::size_t open) noexcept {
    expected_ += average();
    if (expected_ < kApart || open >= kMost) return false;
    expected_ = {};
    return true;
  }
  /// Returns whether so many operations end soon, so that one event behind them all is enough.
  [[nodiscard]] bool soon(std::size_t operations) const noexcept {
    return static_cast<std::int64_t>(operations) <= 2 * kApart / std::max(average(), kShortest);
  }
  /// Notes an operation's device time. One thread at a time, also beside `due`.
  void note(std::chrono::nanoseconds took) noexcept {
    known_ = std::min<std::int64_t>(known_ + 1, kRemembered);
    const std::int64_t before = average_.load(std::memory_order_relaxed);
    average_.store(before + (took.count() - before) / known_, std::memory_order_relaxed);
  }
  /// Returns the average device time of the last operations; kApart before the first is known.
  [[nodiscard]] std::chrono::nanoseconds average() const noexcept {
    return std::chrono::nanoseconds(average_.load(std::memory_order_relaxed));
  }

 private:
  static constexpr std::int64_t kRemembered = 64;  ///< operations of the average
  static constexpr std::chrono::nanoseconds kShortest{1};

  std::chrono::nanoseconds expected_{};  ///< of the operations since the last event
  std::int64_t known_ = 0;
  std::atomic<std::int64_t> average_{kApart.count()};
};

}  // namespace weir
