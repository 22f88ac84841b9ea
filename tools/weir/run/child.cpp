#include "tools/weir/run/child.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <optional>
#include <system_error>

#include "allocator/base/error.hpp"
#include "tools/program/argument_pointers.hpp"

namespace weir::cli {
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
