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
  // If our caller ignored it, the kernel would reap the child.
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  sigaction(SIGCHLD, &action, &child_before_);
  // A summary's reader that went away must not cost the program's exit code.
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
  // Not SIGSTOP: if SIGTSTP is ignored, or nobody could continue the group, the kernel drops it.
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
