#pragma once

// Keeps contexts alive while one of our threads releases memory in them. The program synchronizes
// its own threads, but does not know ours.

#include <chrono>
#include <condition_variable>

#include "allocator/base/calling_thread.hpp"
#include "allocator/base/mutex.hpp"
#include "allocator/base/time_after.hpp"

namespace weir::preload {

/// One thread releases at a time, and none while a context ends. Both call the driver, so no lock
/// is held meanwhile. Thread-safe.
class ContextGate {
 public:
  using Clock = std::chrono::steady_clock;

  /// Lets the calling thread release memory during its lifetime. One turn at a time for each
  /// thread.
  class Turn {
   public:
    /// Not `granted` if until then a context is ending or another thread releases.
    Turn(ContextGate& gate, Clock::time_point until) : gate_(gate), granted_(gate.begin(until)) {}
    ~Turn() {
      if (granted_) gate_.end();
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    [[nodiscard]] bool granted() const noexcept { return granted_; }

   private:
    ContextGate& gate_;
    const bool granted_;
  };

  /// Lets a context end during its lifetime. First waits for the thread that releases, which
  /// calls only the driver's frees, after it has awaited the device.
  class EndOfContext {
   public:
    explicit EndOfContext(ContextGate& gate) : gate_(gate) {
      const NoCancel no_cancel;
      Lock lock(gate_.mutex_);
      ++gate_.ends_;
      while (gate_.releasing_) gate_.changed_.wait(lock);
    }
    ~EndOfContext() {
      const Lock lock(gate_.mutex_);
      --gate_.ends_;
      gate_.changed_.notify_all();
    }
    EndOfContext(const EndOfContext&) = delete;
    EndOfContext& operator=(const EndOfContext&) = delete;

   private:
    ContextGate& gate_;
  };

 private:
  [[nodiscard]] bool begin(Clock::time_point until) {
    const NoCancel no_cancel;
    Lock lock(mutex_);
    while (releasing_ || ends_ != 0) {
      if (changed_.wait_until(lock, until) == std::cv_status::timeout) break;
    }
    if (releasing_ || ends_ != 0) return false;
    releasing_ = true;
    return true;
  }
  void end() {
    const Lock lock(mutex_);
    releasing_ = false;
    changed_.notify_all();
  }

  Mutex mutex_{LockRank::kLeaf};
  std::condition_variable_any changed_;
  bool releasing_ WEIR_GUARDED_BY(mutex_) = false;
  unsigned ends_ WEIR_GUARDED_BY(mutex_) = 0;
};

}  // namespace weir::preload
