#include "tools/weir/run/signals.hpp"

#include <sys/resource.h>

#include <initializer_list>

namespace weir::cli {

BlockedSignals::BlockedSignals() {
  sigfillset(&set_);
  for (const int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGABRT, SIGSYS, SIGTTIN,
                           SIGTTOU, SIGPIPE, SIGKILL, SIGSTOP}) {
    sigdelset(&set_, signal);
  }
  sigprocmask(SIG_BLOCK, &set_, &before_);
  // Ignored by whoever started this, it would let the kernel reap the child.
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  sigaction(SIGCHLD, &action, &child_before_);
  // A reader of the summary that went away is no reason to lose the program's exit code.
  action.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &action, &pipe_before_);
}

BlockedSignals::~BlockedSignals() { restore(); }

void BlockedSignals::restore() const noexcept {
  sigaction(SIGCHLD, &child_before_, nullptr);
  sigaction(SIGPIPE, &pipe_before_, nullptr);
  sigprocmask(SIG_SETMASK, &before_, nullptr);
}

void BlockedSignals::drop_pending() const noexcept {
  constexpr timespec kNow{};
  while (sigtimedwait(&set_, nullptr, &kNow) > 0) continue;
}

void BlockedSignals::stop_self() const noexcept {
  sigset_t stop;
  sigemptyset(&stop);
  sigaddset(&stop, SIGTSTP);
  // Not SIGSTOP: where it is ignored, or nobody could ever make the group go on, the kernel lets
  // this one pass.
  (void)raise(SIGTSTP);
  sigprocmask(SIG_UNBLOCK, &stop, nullptr);
  sigprocmask(SIG_BLOCK, &stop, nullptr);
}

void end_by(int signal) noexcept {
  const rlimit none{.rlim_cur = 0, .rlim_max = 0};
  setrlimit(RLIMIT_CORE, &none);
  (void)std::signal(signal, SIG_DFL);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal);
  (void)raise(signal);
  sigprocmask(SIG_UNBLOCK, &set, nullptr);
}

}  // namespace weir::cli
