#pragma once

// Keeps contexts alive while one of our threads gives memory back in them. The program synchronizes
// its own threads, but does not know ours.

#include <chrono>
#include <condition_variable>

#include "allocator/base/calling_thread.hpp"
#include "allocator/base/mutex.hpp"
#include "allocator/base/time_after.hpp"

namespace weir::preload {

/// One thread gives back at a time, and none while a context ends. Both call the driver, so no lock
/// is held meanwhile. Thread-safe.
class GiveBackGate {
 public:
  /// Lets the calling thread give back during its lifetime. One turn at a time for each thread.
  class Turn {
   public:
    /// Not `granted` if for `most` a context is ending or another thread gives back.
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

  /// Lets a context end during its lifetime. First waits for the thread that gives back, which
  /// calls only the driver's frees.
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
    const auto until = time_after_now(most);
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
