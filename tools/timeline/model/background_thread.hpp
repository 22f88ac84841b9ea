#pragma once

// Background threads of ours, which take no signals and do not keep a process alive.

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

/// Blocks all signals of the calling thread for a scope, so that a thread created meanwhile takes
/// none of the program's signals.
class AllSignalsBlocked {
 public:
  AllSignalsBlocked() noexcept;
  ~AllSignalsBlocked();
  AllSignalsBlocked(const AllSignalsBlocked&) = delete;
  AllSignalsBlocked& operator=(const AllSignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

/// Returns true if main has left by pthread_exit and only background threads are left. Without them
/// the process would have ended, so each must return; the process ends with the last one. Returns
/// false if this cannot be determined. Takes a few microseconds.
[[nodiscard]] bool program_has_ended() noexcept;

}  // namespace weir::timeline
