#pragma once

/// @file
/// What work on one device tells work on another. See Stream::give and Stream::await.

#include <atomic>
#include <chrono>
#include <cstdint>

namespace weir {

/// Given once. Thread-safe, but for `reset`.
class Signal {
 public:
  using Clock = std::chrono::steady_clock;  ///< of its times

  /// Lets waits for it end. The first call counts.
  void give() noexcept {
    std::uint32_t none = kNone;
    if (!state_.compare_exchange_strong(none, kBeingGiven)) return;
    given_at_ = Clock::now();
    state_.store(kGiven, std::memory_order_release);
    state_.notify_all();
  }
  /// Returns once it is given. It calls no driver, so it may wait inside a function of a stream.
  void wait() noexcept {
    for (;;) {
      const std::uint32_t state = state_.load(std::memory_order_acquire);
      if (state == kGiven) break;
      state_.wait(state, std::memory_order_acquire);
    }
    awaited_at_.store(Clock::now().time_since_epoch().count(), std::memory_order_relaxed);
  }
  /// Whether it is given.
  [[nodiscard]] bool given() const noexcept {
    return state_.load(std::memory_order_acquire) == kGiven;
  }
  /// Returns when it was given. Only once it is.
  [[nodiscard]] Clock::time_point given_at() const noexcept { return given_at_; }
  /// Returns when the last wait for it ended.
  [[nodiscard]] Clock::time_point awaited_at() const noexcept {
    return Clock::time_point(Clock::duration(awaited_at_.load(std::memory_order_relaxed)));
  }
  /// Takes it back, for another use. Nobody may use it meanwhile.
  void reset() noexcept { state_.store(kNone, std::memory_order_relaxed); }

 private:
  static constexpr std::uint32_t kNone = 0;
  static constexpr std::uint32_t kBeingGiven = 1;
  static constexpr std::uint32_t kGiven = 2;

  std::atomic<std::uint32_t> state_{kNone};
  Clock::time_point given_at_{};  ///< written before the state says given
  std::atomic<Clock::rep> awaited_at_{0};
};

}  // namespace weir
