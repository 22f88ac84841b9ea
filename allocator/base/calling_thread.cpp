#include "allocator/base/calling_thread.hpp"

#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <ctime>

namespace weir {
namespace {

sigset_t only_it() noexcept {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGXFSZ);
  return set;
}

}  // namespace

FileSizeSignalBlocked::FileSizeSignalBlocked() noexcept {
  sigset_t pending;
  was_pending_ = sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ) == 1;
  const sigset_t it = only_it();
  (void)pthread_sigmask(SIG_BLOCK, &it, &before_);
}

FileSizeSignalBlocked::~FileSizeSignalBlocked() {
  const int error = errno;
  const sigset_t it = only_it();
  constexpr timespec kNoTime{};
  // The signal goes to the thread that wrote: it is pending by now or never.
  while (!was_pending_ && sigtimedwait(&it, nullptr, &kNoTime) < 0 && errno == EINTR) continue;
  (void)pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  errno = error;
}

std::uint64_t this_thread_number() noexcept {
  static std::atomic<std::uint64_t> last{0};
  thread_local const std::uint64_t kNumber = ++last;
  return kNumber;
}

}  // namespace weir
