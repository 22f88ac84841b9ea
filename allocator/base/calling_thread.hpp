#pragma once

// What code of ours changes or keeps on the calling thread: its cancellation, a signal, its
// number, scratch memory.

#include <pthread.h>

#include <csignal>
#include <cstdint>
#include <utility>

namespace weir {

/// Defers cancellation of the calling thread to the program's next call that may wait:
/// pthread_cancel unwinds a thread from a sleep, a read or a print, and unwinding through a
/// noexcept function ends the program. Only for our own code, never around the program's. Costs
/// some ns.
class NoCancel {
 public:
  NoCancel() noexcept { (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~NoCancel() { (void)pthread_setcancelstate(before_, nullptr); }
  NoCancel(const NoCancel&) = delete;
  NoCancel& operator=(const NoCancel&) = delete;

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

/// Makes a write past RLIMIT_FSIZE fail on the calling thread instead of raising SIGXFSZ.
/// Async-signal-safe.
class FileSizeSignalBlocked {
 public:
  FileSizeSignalBlocked() noexcept;
  ~FileSizeSignalBlocked();
  FileSizeSignalBlocked(const FileSizeSignalBlocked&) = delete;
  FileSizeSignalBlocked& operator=(const FileSizeSignalBlocked&) = delete;

 private:
  sigset_t before_{};
  bool was_pending_ = false;  ///< one of the program's own
};

/// Returns the calling thread's number in the process, from 1 on. Never used again, unlike a thread
/// id.
[[nodiscard]] std::uint64_t this_thread_number() noexcept;

/// Returns the calling thread's T, reused by its next call and deleted when the thread ends. Exit
/// handlers and destructors of statics may free memory later, when a plain thread_local is gone;
/// they get a new T that is never deleted.
template <typename T>
[[nodiscard]] T& thread_scratch() {
  static constinit thread_local T* mine = nullptr;
  struct End {
    ~End() { delete std::exchange(mine, nullptr); }
  };
  if (mine == nullptr) {
    mine = new T;
    static thread_local const End kEnd;
    (void)kEnd;
  }
  return *mine;
}

}  // namespace weir
