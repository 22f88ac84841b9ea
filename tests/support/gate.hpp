#pragma once

// Stops a thread at a known place until the test lets it continue, so that no test has to sleep.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

namespace weir::testing {

/// Time for a faulty thread to do harm. No expected result depends on how long it is.
inline void give_others_a_chance() {
  for (int i = 0; i < 10'000; ++i) std::this_thread::yield();
}

/// Nobody waits at a gate forever: if a test cannot open it, because its own call waits for the
/// stopped thread, the wait ends by itself and the test fails.
class Gate {
 public:
  /// The stopped thread: reports its arrival, and waits until the gate is open.
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
  /// Far longer than a correct test takes. If one gate was not opened, most likely no gate of the
  /// program is, so later ones are short enough for the whole program to end in time.
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
