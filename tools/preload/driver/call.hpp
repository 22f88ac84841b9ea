#pragma once

// One call of the program, and calls that a signal handler makes during it. A handler's call finds
// the thread's locks taken and its tables half changed, so it must not touch them: the driver
// answers what can be passed, and the rest is done when the interrupted call ends.

#include <cuda.h>

#include <atomic>
#include <chrono>
#include <cstddef>

#include "allocator/base/mutex.hpp"
#include "tools/preload/driver/scope.hpp"
#include "tools/preload/driver/this_thread.hpp"

namespace weir::preload {

/// Comes first in every hook and every library function that the program calls, and is handed down.
/// Inside another Call of the thread it is `nested`, and hooks pass as inside `Inside`.
class Call {
 public:
  using Clock = std::chrono::steady_clock;

  Call() noexcept
      : interrupts_(guard.in_call || held_lock_ranks() != 0),
        nested_(interrupts_ || Inside::now()),
        inside_(nested_) {
    if (!nested_) guard.in_call = true;
    std::atomic_signal_fence(std::memory_order_seq_cst);  // a handler of this thread sees it
  }
  ~Call() {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (nested_) return;
    guard.in_call = false;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (this_thread.postponed.load(std::memory_order_relaxed) != 0) catch_up();
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  [[nodiscard]] bool nested() const noexcept { return nested_; }
  /// Whether a Call made now would be `nested`. Takes no lock.
  [[nodiscard]] static bool is_inside() noexcept {
    return guard.in_call || held_lock_ranks() != 0 || Inside::now();
  }
  /// Returns the latest end of all its waits together: `most` after the first time that this is
  /// asked, or the past in a callback of the device, which nothing makes wait.
  [[nodiscard]] Clock::time_point until(std::chrono::nanoseconds most) noexcept;

  /// During its lifetime the driver or another hook has the program's call: locks and tables are
  /// consistent, so a handler's call is served normally.
  class InDriver {
   public:
    InDriver() noexcept : before_(guard.in_call) { guard.in_call = false; }
    ~InDriver() { guard.in_call = before_; }
    InDriver(const InDriver&) = delete;
    InDriver& operator=(const InDriver&) = delete;

   private:
    const bool before_;
  };

  // What a nested call postpones to the end of the interrupted one. Safe in a signal handler. False
  // if there is no more room: nothing is postponed.

  /// Postpones counting memory that the driver served. Not if the driver itself made the call.
  void count_later(CUdeviceptr pointer, std::size_t bytes) const noexcept;
  /// Cancels a `count_later`. Returns whether there was one.
  [[nodiscard]] static bool take_back(CUdeviceptr pointer) noexcept;
  [[nodiscard]] static bool free_later(CUdeviceptr pointer) noexcept;
  [[nodiscard]] static bool free_later(CUdeviceptr pointer, CUstream stream,
                                       bool per_thread) noexcept;
  [[nodiscard]] static bool destroy_later(CUstream stream) noexcept;
  /// Postpones following a stream that got work and may be unknown.
  static void follow_later(CUstream stream) noexcept;

 private:
  /// Makes the postponed calls (process/postponed.cpp).
  static void catch_up() noexcept;

  const bool interrupts_;  ///< our code, or a driver call that we made
  const bool nested_;
  const Inside inside_;
  Clock::time_point until_{};  ///< empty until asked
};

}  // namespace weir::preload
