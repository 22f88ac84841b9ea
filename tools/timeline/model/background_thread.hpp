#pragma once

// Background threads of ours, which take no signals and do not keep a process alive.

#include <csignal>
#include <string_view>

#include "allocator/base/log.hpp"

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

// Detects exit handlers that run inside a call of ours. exit() in a signal handler runs them on the
// interrupted thread, which may hold our locks and never releases them.

/// Sets a function that knows calls which hold no lock of ours at the moment. `is_in_call` returns
/// whether the calling thread is in one, and takes no lock. Null removes it.
void set_call_check(bool (*is_in_call)() noexcept) noexcept;

/// For exit handlers: returns whether the calling thread is in a call that will never resume. Take
/// no lock then.
[[nodiscard]] bool exits_in_call() noexcept;

/// Like `log`, but writes to standard error by one system call, without a lock.
void say_unlocked(LogLevel level, std::string_view text) noexcept;

}  // namespace weir::timeline
