#pragma once

// A hooked call of the program, and calls that a signal handler makes during it. A handler's call
// finds the thread's locks taken and its tables half changed, so it must not touch them: the driver
// answers what can be passed, and the rest is done when the interrupted call ends.

#include <cuda.h>

#include <atomic>
#include <cstddef>

#include "allocator/base/mutex.hpp"
#include "tools/preload/driver/scope.hpp"

namespace weir::preload {

/// Comes first in every hook and every library function that the program calls. Inside another
/// Entry of the thread it is `nested`, and hooks pass as inside `Inside`.
class Entry {
 public:
  Entry() noexcept
      : interrupts_(busy_now || held_lock_ranks() != 0),
        nested_(interrupts_ || Inside::now()),
        inside_(nested_) {
    if (!nested_) busy_now = true;
    std::atomic_signal_fence(std::memory_order_seq_cst);  // a handler of this thread sees it
  }
  ~Entry() {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (nested_) return;
    busy_now = false;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (left_here.load(std::memory_order_relaxed) != 0) catch_up();
  }
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;
  [[nodiscard]] bool nested() const noexcept { return nested_; }
  /// Whether an Entry made now would be `nested`. Takes no lock.
  [[nodiscard]] static bool is_inside() noexcept {
    return busy_now || held_lock_ranks() != 0 || Inside::now();
  }

  /// During its lifetime the driver or another hook has the program's call: locks and tables are
  /// consistent, so a handler's call is served normally.
  class InDriver {
   public:
    InDriver() noexcept : before_(busy_now) { busy_now = false; }
    ~InDriver() { busy_now = before_; }
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
  static void catch_up() noexcept;

  inline static constinit thread_local bool busy_now = false;
  inline static constinit thread_local std::atomic<std::size_t> left_here{0};

  const bool interrupts_;  ///< our code, or a driver call that we made
  const bool nested_;
  const Inside inside_;
};

}  // namespace weir::preload
