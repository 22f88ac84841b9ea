#include "tools/weir/run/child.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <initializer_list>
#include <optional>
#include <system_error>

#include "allocator/base/error.hpp"
#include "tools/program/argument_pointers.hpp"

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

namespace {

[[noreturn]] void fail(const std::string& path, int error) {
  throw UsageError("'" + path + "' cannot be started: " + std::generic_category().message(error));
}

/// Runs between fork and exec, so it may call only what is safe in a signal handler.
[[noreturn]] void become(const char* path, char* const* arguments, char* const* environment,
                         int report) noexcept {
  execve(path, arguments, environment);
  const int error = errno;
  (void)!write(report, &error, sizeof error);
  _exit(127);
}

/// Returns how it ended, if it did.
std::optional<Ended> reap(pid_t process) {
  int status = 0;
  const pid_t reaped = waitpid(process, &status, WNOHANG);
  if (reaped != process) return std::nullopt;
  if (WIFSIGNALED(status)) return Ended{.signal = WTERMSIG(status)};
  return Ended{.exit_code = WEXITSTATUS(status)};
}

}  // namespace

Child::Child(const std::string& path, std::vector<std::string> arguments,
             std::vector<std::string> environment, const BlockedSignals& signals)
    : signals_(signals) {
  const std::vector<char*> argv = argument_pointers(arguments);
  const std::vector<char*> envp = argument_pointers(environment);
  // A successful exec closes it; otherwise it carries the reason.
  std::array<int, 2> report{};
  if (pipe2(report.data(), O_CLOEXEC) != 0) fail(path, errno);
  process_ = fork();
  if (process_ == 0) {
    signals.restore();
    become(path.c_str(), argv.data(), envp.data(), report[1]);
  }
  const int fork_error = errno;
  close(report[1]);
  int error = 0;
  const ssize_t count = process_ < 0 ? 0 : read(report[0], &error, sizeof error);
  close(report[0]);
  if (process_ < 0) fail(path, fork_error);
  if (count != 0) {
    waitpid(process_, nullptr, 0);
    fail(path, error);
  }
}

Ended Child::wait() const {
  for (;;) {
    if (const auto ended = reap(process_)) {
      signals_.drop_pending();
      return *ended;
    }
    siginfo_t news{};
    const int signal = sigwaitinfo(&signals_.set(), &news);
    if (signal < 0) continue;
    const Response response = respond(signal, news.si_code, news.si_pid, process_);
    if (response.forward) kill(process_, signal);
    if (response.stop) signals_.stop_self();
  }
}

}  // namespace weir::cli
