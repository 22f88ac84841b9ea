#pragma once

// pthread_cancel unwinds a thread from a call that may wait, such as a sleep, a read or a print.
// Unwinding through a noexcept function ends the program.

#include <pthread.h>

namespace weir {

/// Defers cancellation of the calling thread to the program's next call that may wait. Only for our
/// own code, never around the program's. Costs some ns.
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
