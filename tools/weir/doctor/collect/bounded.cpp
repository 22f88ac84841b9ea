#include "tools/weir/doctor/collect/bounded.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <exception>
#include <new>
#include <string_view>
#include <system_error>
#include <utility>

#include "allocator/base/time_after.hpp"
#include "tools/program/argument_pointers.hpp"

namespace weir::cli::doctor {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// The exit code of a copy of this process that has no memory left.
constexpr int kNoMemory = 126;
constexpr std::size_t kMostOutput = std::size_t{1} << 20U;
/// How long the kernel may take to end a process. One that hangs in a driver's call stays.
constexpr milliseconds kEnding{1000};
/// In milliseconds: how often a child that prints nothing is asked whether it has ended.
constexpr int kMoment = 20;

int milliseconds_until(Clock::time_point end) {
  const auto left = std::chrono::ceil<milliseconds>(end - Clock::now());
  return static_cast<int>(std::max<milliseconds::rep>(left.count(), 0));
}

/// A pipe from the child; both ends are closed with it.
class Pipe {
 public:
  Pipe() {
    if (pipe2(ends_.data(), O_CLOEXEC) != 0) {
      throw std::system_error(errno, std::generic_category(), "no pipe can be made");
    }
  }
  ~Pipe() {
    close_reader();
    close_writer();
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  [[nodiscard]] int reader() const noexcept { return ends_[0]; }
  [[nodiscard]] int writer() const noexcept { return ends_[1]; }
  void close_reader() noexcept { shut(ends_[0]); }
  void close_writer() noexcept { shut(ends_[1]); }
  /// Reads once what is there. Closes the reader at the end.
  void read_into(std::string& text) {
    std::array<char, 4096> part{};
    const ssize_t count = read(reader(), part.data(), part.size());
    if (count < 0 && errno == EINTR) return;
    if (count <= 0) return close_reader();
    const std::size_t room = kMostOutput - text.size();
    text.append(part.data(), std::min(static_cast<std::size_t>(count), room));
  }

 private:
  static void shut(int& end) noexcept {
    if (end >= 0) close(end);
    end = -1;
  }
  std::array<int, 2> ends_{-1, -1};
};

/// Keeps SIGCHLD for sigtimedwait during its lifetime.
class ChildSignal {
 public:
  ChildSignal() {
    sigemptyset(&set_);
    sigaddset(&set_, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set_, &before_);
    // If our caller ignored it, the kernel would reap the child.
    struct sigaction action {};
    action.sa_handler = SIG_DFL;
    sigaction(SIGCHLD, &action, &action_before_);
  }
  ~ChildSignal() {
    sigaction(SIGCHLD, &action_before_, nullptr);
    sigprocmask(SIG_SETMASK, &before_, nullptr);
  }
  ChildSignal(const ChildSignal&) = delete;
  ChildSignal& operator=(const ChildSignal&) = delete;

  /// In the child.
  void restore() const noexcept { sigprocmask(SIG_SETMASK, &before_, nullptr); }
  /// Returns whether the process ended before `end`, and how.
  [[nodiscard]] bool reap(pid_t process, int& status, Clock::time_point end) const {
    for (;;) {
      const pid_t reaped = waitpid(process, &status, WNOHANG);
      if (reaped == process) return true;
      const int left = milliseconds_until(end);
      if (left == 0) return false;
      const timespec time{.tv_sec = left / 1000, .tv_nsec = left % 1000 * 1'000'000L};
      (void)sigtimedwait(&set_, nullptr, &time);
    }
  }

 private:
  sigset_t set_{};
  sigset_t before_{};
  struct sigaction action_before_ {};
};

/// The process group that a signal which ends us ends first; zero: none. For the handler.
volatile std::sig_atomic_t group_to_end = 0;

extern "C" void end_group(int signal) {
  if (group_to_end > 0) (void)kill(-group_to_end, SIGKILL);
  (void)std::signal(signal, SIG_DFL);
  (void)raise(signal);
}

/// During its lifetime, what interrupts us ends the child's group too: it is not in ours.
class Interruption {
 public:
  Interruption() {
    sigset_t set;
    sigemptyset(&set);
    for (const int signal : kSignals) sigaddset(&set, signal);
    sigprocmask(SIG_BLOCK, &set, &before_);
    for (std::size_t i = 0; i < kSignals.size(); ++i) {
      sigaction(kSignals[i], nullptr, &actions_[i]);
      if (actions_[i].sa_handler == SIG_IGN) continue;  // as nohup asks
      struct sigaction action {};
      action.sa_handler = end_group;
      sigaction(kSignals[i], &action, nullptr);
    }
  }
  ~Interruption() {
    restore_actions();
    group_to_end = 0;
  }
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  void now_ends(pid_t group) const noexcept {
    group_to_end = group;
    sigprocmask(SIG_SETMASK, &before_, nullptr);
  }
  /// In the child.
  void restore() const noexcept {
    restore_actions();
    sigprocmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  static constexpr std::array kSignals{SIGINT, SIGTERM, SIGHUP};

  void restore_actions() const noexcept {
    for (std::size_t i = 0; i < kSignals.size(); ++i) {
      sigaction(kSignals[i], &actions_[i], nullptr);
    }
  }

  sigset_t before_{};
  std::array<struct sigaction, kSignals.size()> actions_{};
};

/// Whether the process has ended; it is not reaped.
bool has_ended(pid_t process) noexcept {
  siginfo_t info{};
  return waitid(P_PID, static_cast<id_t>(process), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == process;
}

/// Until the process has ended, and the pipes are closed or a moment brings nothing more: what it
/// left behind may keep them open.
void read_until(pid_t process, Pipe& out, Pipe& err, Bounded& result, Clock::time_point end) {
  bool ended = false;
  // A child that never stops writing always has something to read.
  while ((out.reader() >= 0 || err.reader() >= 0) && Clock::now() < end) {
    std::array<pollfd, 2> files{{{.fd = out.reader(), .events = POLLIN, .revents = 0},
                                 {.fd = err.reader(), .events = POLLIN, .revents = 0}}};
    const int ready = poll(files.data(), files.size(), std::min(milliseconds_until(end), kMoment));
    if (ready == 0 && std::exchange(ended, has_ended(process))) return;
    if (ready <= 0) continue;
    if (files[0].revents != 0) out.read_into(result.out);
    if (files[1].revents != 0) err.read_into(result.err);
  }
}

/// Ends the group of a child and reaps the child, unless dismissed.
class GroupEnd {
 public:
  GroupEnd(pid_t process, const ChildSignal& signal) : process_(process), signal_(signal) {}
  ~GroupEnd() {
    if (dismissed_) return;
    (void)kill(-process_, SIGKILL);
    int status = 0;
    (void)signal_.reap(process_, status, Clock::now() + kEnding);
  }
  GroupEnd(const GroupEnd&) = delete;
  GroupEnd& operator=(const GroupEnd&) = delete;

  void dismiss() noexcept { dismissed_ = true; }

 private:
  const pid_t process_;
  const ChildSignal& signal_;
  bool dismissed_ = false;
};

/// Starts `child` in a process group of its own, with no input and the pipes as its output, and
/// waits for its end. `child` does not return.
Bounded run_child(const std::function<void()>& child, milliseconds limit) {
  const Clock::time_point end = time_after_now(limit);
  const ChildSignal signal;
  Pipe out;
  Pipe err;
  const Interruption interruption;
  const pid_t parent = getpid();
  const pid_t process = fork();
  const int error = errno;
  if (process < 0) {
    interruption.now_ends(0);
    throw std::system_error(error, std::generic_category(), "no process can be made");
  }
  if (process == 0) {
    (void)setpgid(0, 0);
    // So does our end by SIGKILL, which may have come before this call.
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127);
    const rlimit none{.rlim_cur = 0, .rlim_max = 0};
    (void)setrlimit(RLIMIT_CORE, &none);
    const int input = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (input < 0) close(STDIN_FILENO);
    (void)dup2(input, STDIN_FILENO);
    (void)dup2(out.writer(), STDOUT_FILENO);
    (void)dup2(err.writer(), STDERR_FILENO);
    for (Pipe* const pipe : {&out, &err}) {  // the child may need all files that it is allowed
      pipe->close_reader();
      pipe->close_writer();
    }
    if (input >= 0) close(input);
    interruption.restore();
    signal.restore();
    child();
    _exit(127);
  }
  GroupEnd group(process, signal);
  (void)setpgid(process, process);  // whoever of the two comes first
  interruption.now_ends(process);
  out.close_writer();
  err.close_writer();
  Bounded result;
  read_until(process, out, err, result, end);
  int status = 0;
  const bool ended = signal.reap(process, status, end);
  group.dismiss();
  (void)kill(-process, SIGKILL);  // also what it left behind
  if (!ended) {
    result.answer = Answer::kTimedOut;
    (void)signal.reap(process, status, Clock::now() + kEnding);
  } else if (WIFSIGNALED(status)) {
    result.answer = Answer::kCrashed;
    result.signal = WTERMSIG(status);
  } else {
    result.exit_code = WEXITSTATUS(status);
  }
  return result;
}

void write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace

Bounded run_program(const std::string& path, std::vector<std::string> words,
                    std::vector<std::string> environment, milliseconds limit) {
  const std::vector<char*> argv = argument_pointers(words);
  const std::vector<char*> envp = argument_pointers(environment);
  return run_child([&] { (void)execve(path.c_str(), argv.data(), envp.data()); }, limit);
}

Bounded run_function(const std::function<std::string()>& body, milliseconds limit) {
  Bounded ran = run_child(
      [&] {
        // The loader's and the libraries' own messages must not be taken for the result.
        const int result = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        const int why = errno;
        (void)dup2(STDERR_FILENO, STDOUT_FILENO);
        int code = 0;
        try {
          if (result < 0) throw std::system_error(why, std::generic_category(), "no file is free");
          write_all(result, body());
        } catch (const std::bad_alloc&) {
          code = kNoMemory;
        } catch (const std::exception& error) {
          write_all(STDERR_FILENO, error.what());
          code = 1;
        }
        _exit(code);  // no exit handlers: they are the parent's
      },
      limit);
  if (ran.exit_code == kNoMemory) throw std::bad_alloc();
  return ran;
}

}  // namespace weir::cli::doctor
