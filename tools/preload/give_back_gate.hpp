#pragma once

// Keeps contexts from ending while memory is given back in them by a thread that is not the
// program's. The program answers for its own threads, and cannot know of ours.

#include <condition_variable>

#include "allocator/mutex.hpp"

namespace weir::preload {

/// One thread gives back at a time, and none while a context ends. No lock is held meanwhile: both
/// call the driver. Thread-safe.
class GiveBackGate {
 public:
  /// To be ended by `end`. False: a context ends now, or another thread gives back and `waits` is
  /// false.
  [[nodiscard]] bool begin(bool waits) {
    Lock lock(mutex_);
    while (waits && giving_) changed_.wait(lock);
    if (giving_ || ends_ != 0) return false;
    giving_ = true;
    return true;
  }
  void end() {
    const Lock lock(mutex_);
    giving_ = false;
    changed_.notify_all();
  }

  /// A context ends while it lives. Waits for who gives back.
  class EndOfContext {
   public:
    /// Null: nothing is to be kept apart.
    explicit EndOfContext(GiveBackGate* gate) : gate_(gate) {
      if (gate_ == nullptr) return;
      Lock lock(gate_->mutex_);
      ++gate_->ends_;
      while (gate_->giving_) gate_->changed_.wait(lock);
    }
    ~EndOfContext() {
      if (gate_ == nullptr) return;
      const Lock lock(gate_->mutex_);
      --gate_->ends_;
    }
    EndOfContext(const EndOfContext&) = delete;
    EndOfContext& operator=(const EndOfContext&) = delete;

   private:
    GiveBackGate* const gate_;
  };

 private:
  Mutex mutex_{LockRank::kLeaf};
  std::condition_variable_any changed_;
  bool giving_ WEIR_GUARDED_BY(mutex_) = false;
  unsigned ends_ WEIR_GUARDED_BY(mutex_) = 0;
};

}  // namespace weir::preload
