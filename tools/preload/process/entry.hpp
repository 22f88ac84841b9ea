#pragma once

// A call of the program that a hook answers, and calls that a signal handler makes meanwhile. Such
// a call finds the thread's locks taken and its tables half changed, so nothing of them is touched:
// the driver answers what can be passed, and the rest is done when the interrupted call has ended.

#include <cuda.h>

#include <atomic>
#include <cstddef>

#include "allocator/base/mutex.hpp"
#include "tools/preload/driver/scope.hpp"

namespace weir::preload {

/// The first thing in a hook, and in each function that the program calls of the library. Where the
/// thread is inside another one already it is `nested`, and hooks pass as inside `Inside`.
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

  /// While it lives, the driver, or a hook of ours, has the program's call: locks and tables are in
  /// order, and who interrupts it now is served as ever.
  class InDriver {
   public:
    InDriver() noexcept : before_(busy_now) { busy_now = false; }
    ~InDriver() { busy_now = before_; }
    InDriver(const InDriver&) = delete;
    InDriver& operator=(const InDriver&) = delete;

   private:
    const bool before_;
  };

  // What a nested call leaves for the end of the one that it interrupted. Each may be called in a
  // signal handler. False: there is no room for more, and nothing is left.

  /// The driver served it, and nobody counted it. Not where the driver itself made the call.
  void count_later(CUdeviceptr pointer, std::size_t bytes) const noexcept;
  /// `count_later` had it, and it need not be counted any more.
  [[nodiscard]] static bool take_back(CUdeviceptr pointer) noexcept;
  [[nodiscard]] static bool free_later(CUdeviceptr pointer) noexcept;
  [[nodiscard]] static bool free_later(CUdeviceptr pointer, CUstream stream,
                                       bool per_thread) noexcept;
  [[nodiscard]] static bool destroy_later(CUstream stream) noexcept;
  /// Work was enqueued on a stream that may not be known yet.
  static void follow_later(CUstream stream) noexcept;

 private:
  static void catch_up() noexcept;
  /// `fill` fills a place and says what it is.
  template <typename Fill>
  [[nodiscard]] static bool leave(const Fill& fill) noexcept;

  inline static constinit thread_local bool busy_now = false;
  inline static constinit thread_local std::atomic<std::size_t> left_here{0};

  const bool interrupts_;  ///< code of ours, or a call of the driver that we made
  const bool nested_;
  const Inside inside_;
};

}  // namespace weir::preload
