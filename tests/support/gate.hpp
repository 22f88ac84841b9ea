#pragma once

// Holds a thread at a known place until the test lets it go on, so that no test has to sleep.

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

class Gate {
 public:
  /// The held thread: says that it is here, and stays until the gate is open.
  void pass() {
    std::unique_lock lock(mutex_);
    ++arrived_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return open_; });
  }
  /// The test: returns when `count` threads have come to the gate.
  void await_arrival(std::uint64_t count = 1) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return arrived_ >= count; });
  }
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t arrived_ = 0;
  bool open_ = false;
};

}  // namespace weir::testing
