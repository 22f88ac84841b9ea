#pragma once

// Holds a thread at a known place until the test lets it go on, so that no test has to sleep.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

namespace weir::testing {

/// Time for a thread that goes wrong to do so. What a test expects never depends on how much that
/// is.
inline void give_others_a_chance() {
  for (int i = 0; i < 10'000; ++i) std::this_thread::yield();
}

/// Nobody waits at a gate for ever: where a test cannot open it, because a call of its own waits
/// for who stands there, the wait ends by itself and the test fails.
class Gate {
 public:
  /// The held thread: says that it is here, and stays until the gate is open.
  void pass() {
    std::unique_lock lock(mutex_);
    ++arrived_;
    changed_.notify_all();
    await(
        lock, [this] { return open_; }, "a gate was not opened");
  }
  /// The test: returns when `count` threads have come to the gate.
  void await_arrival(std::uint64_t count = 1) {
    std::unique_lock lock(mutex_);
    await(
        lock, [&] { return arrived_ >= count; }, "nobody came to a gate");
  }
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  /// Far beyond what a test takes that is right. Where one gate was not opened, most likely none of
  /// the program is: the later ones hold so short that the whole program ends in time.
  [[nodiscard]] static std::chrono::milliseconds longest() {
    return std::chrono::milliseconds(starved() ? 100 : 60'000);
  }
  [[nodiscard]] static std::atomic<bool>& starved() {
    static std::atomic<bool> any = false;
    return any;
  }
  template <typename Condition>
  void await(std::unique_lock<std::mutex>& lock, const Condition& condition, const char* why) {
    if (changed_.wait_for(lock, longest(), condition)) return;
    starved() = true;
    ADD_FAILURE() << why;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t arrived_ = 0;
  bool open_ = false;
};

}  // namespace weir::testing
