#pragma once

// Threads of ours: they take no signals, and do not keep a process alive.

#include <csignal>

namespace weir::timeline {

/// Marks the calling thread as one that only watches the program, until the scope ends.
class BackgroundThread {
 public:
  BackgroundThread() noexcept;
  ~BackgroundThread();
  BackgroundThread(const BackgroundThread&) = delete;
  BackgroundThread& operator=(const BackgroundThread&) = delete;
};

/// Blocks all signals of the calling thread for a scope, so that a thread that is made meanwhile
/// never takes one that is the program's.
class AllSignalsBlocked {
 public:
  AllSignalsBlocked() noexcept;
  ~AllSignalsBlocked();
  AllSignalsBlocked(const AllSignalsBlocked&) = delete;
  AllSignalsBlocked& operator=(const AllSignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

/// True if main has left by pthread_exit and only background threads are left. The process would
/// have ended without them, so each has to return; with the last one it ends as it would have.
/// False where that cannot be found out. A few microseconds.
[[nodiscard]] bool program_has_ended() noexcept;

}  // namespace weir::timeline
