#pragma once

// Keeps contexts from ending while memory is given back in them by a thread that is not the
// program's. The program answers for its own threads, and cannot know of ours.

#include <chrono>
#include <condition_variable>

#include "allocator/base/mutex.hpp"
#include "allocator/base/no_cancel.hpp"

namespace weir::preload {

/// One thread gives back at a time, and none while a context ends. No lock is held meanwhile: both
/// call the driver. Thread-safe.
class GiveBackGate {
 public:
  /// The calling thread gives back while it lives. A thread has one turn at a time.
  class Turn {
   public:
    /// Not `granted` where a context ends or another thread gives back, and goes on doing so for
    /// `most`.
    Turn(GiveBackGate& gate, std::chrono::nanoseconds most)
        : gate_(gate), granted_(gate.begin(most)) {}
    ~Turn() {
      if (granted_) gate_.end();
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    [[nodiscard]] bool granted() const noexcept { return granted_; }

   private:
    GiveBackGate& gate_;
    const bool granted_;
  };

  /// A context ends while it lives. Waits for who gives back, which calls only frees of the driver.
  class EndOfContext {
   public:
    explicit EndOfContext(GiveBackGate& gate) : gate_(gate) {
      const NoCancel no_cancel;
      Lock lock(gate_.mutex_);
      ++gate_.ends_;
      while (gate_.giving_) gate_.changed_.wait(lock);
    }
    ~EndOfContext() {
      const Lock lock(gate_.mutex_);
      --gate_.ends_;
      gate_.changed_.notify_all();
    }
    EndOfContext(const EndOfContext&) = delete;
    EndOfContext& operator=(const EndOfContext&) = delete;

   private:
    GiveBackGate& gate_;
  };

 private:
  [[nodiscard]] bool begin(std::chrono::nanoseconds most) {
    const auto until = std::chrono::steady_clock::now() + most;
    const NoCancel no_cancel;
    Lock lock(mutex_);
    while (giving_ || ends_ != 0) {
      if (changed_.wait_until(lock, until) == std::cv_status::timeout) break;
    }
    if (giving_ || ends_ != 0) return false;
    giving_ = true;
    return true;
  }
  void end() {
    const Lock lock(mutex_);
    giving_ = false;
    changed_.notify_all();
  }

  Mutex mutex_{LockRank::kLeaf};
  std::condition_variable_any changed_;
  bool giving_ WEIR_GUARDED_BY(mutex_) = false;
  unsigned ends_ WEIR_GUARDED_BY(mutex_) = 0;
};

}  // namespace weir::preload
