#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <stop_token>

#include "allocator/base/mutex.hpp"

namespace weir {

/// A condition variable for a Mutex.
///
/// To wake, change the state under the lock, release the lock, and then notify. A sleeper that is
/// notified while the lock is held wakes up, finds the lock taken, and sleeps again: that takes
/// more than twice as long. std::condition_variable_any always costs that, because it notifies
/// under a lock of its own. So only sleepers that can be stopped use one.
class Condition {
 public:
  /// Sleeps until notified. May wake without reason.
  void wait(Lock& lock) {
    Borrowed mutex(lock);
    unstoppable_.wait(mutex.held);
  }
  /// Sleeps until `is_over`, which is called under the lock, and returns true. Returns false if
  /// stopped first.
  template <typename IsOver>
  bool wait(Lock& lock, const std::stop_token& stop, const IsOver& is_over) {
    if (stop.stop_possible()) {
      const Stoppable counted(*this);
      return stoppable_.wait(lock, stop, is_over);
    }
    Borrowed mutex(lock);
    unstoppable_.wait(mutex.held, is_over);
    return true;
  }
  /// The same, but also returns false at `deadline`.
  template <typename IsOver>
  bool wait_until(Lock& lock, const std::stop_token& stop,
                  std::chrono::steady_clock::time_point deadline, const IsOver& is_over) {
    if (stop.stop_possible()) {
      const Stoppable counted(*this);
      return stoppable_.wait_until(lock, stop, deadline, is_over);
    }
    Borrowed mutex(lock);
    return unstoppable_.wait_until(mutex.held, deadline, is_over);
  }

  void notify_one() noexcept {
    // A sleeper counted itself before it released the lock, under which the caller changed what it
    // waits for.
    if (stoppable_count_.load(std::memory_order_relaxed) != 0) {
      notify_all();
    } else {
      unstoppable_.notify_one();
    }
  }
  void notify_all() noexcept {
    unstoppable_.notify_all();
    if (stoppable_count_.load(std::memory_order_relaxed) != 0) stoppable_.notify_all();
  }

 private:
  /// The Mutex of a Lock in the form that std::condition_variable takes. The rank stays noted while
  /// the thread sleeps.
  struct Borrowed {
    explicit Borrowed(Lock& lock) : held(lock.mutex_.mutex_, std::adopt_lock) {}
    ~Borrowed() { held.release(); }
    Borrowed(const Borrowed&) = delete;
    Borrowed& operator=(const Borrowed&) = delete;

    std::unique_lock<std::mutex> held;
  };
  /// Counts a sleeper on `stoppable_`. Created and destroyed under the lock.
  struct Stoppable {
    explicit Stoppable(Condition& condition) noexcept : count(condition.stoppable_count_) {
      count.fetch_add(1, std::memory_order_relaxed);
    }
    ~Stoppable() { count.fetch_sub(1, std::memory_order_relaxed); }
    Stoppable(const Stoppable&) = delete;
    Stoppable& operator=(const Stoppable&) = delete;

    std::atomic<std::uint32_t>& count;
  };

  std::condition_variable unstoppable_;
  std::condition_variable_any stoppable_;
  std::atomic<std::uint32_t> stoppable_count_{0};
};

}  // namespace weir
