#pragma once

// pthread_cancel ends a thread by unwinding it from a call that may wait: a sleep, a read, a line
// that is printed. That ends the program where it meets a function that must not throw.

#include <pthread.h>

namespace weir {

/// While it lives, the calling thread is not cancelled: it is at the program's next call that may
/// wait. For code of ours only, never around the program's own. Some ns.
class NoCancel {
 public:
  NoCancel() noexcept { (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~NoCancel() { (void)pthread_setcancelstate(before_, nullptr); }
  NoCancel(const NoCancel&) = delete;
  NoCancel& operator=(const NoCancel&) = delete;

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace weir
