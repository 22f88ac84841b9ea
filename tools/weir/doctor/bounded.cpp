#include "tools/weir/doctor/bounded.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <exception>
#include <new>
#include <optional>
#include <string_view>
#include <system_error>
#include <thread>

#include "allocator/base/time_after.hpp"
#include "tools/program/argument_pointers.hpp"

namespace weir::cli::doctor {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// The exit code of a copy of this process that has no memory left.
constexpr int kNoMemory = 126;
constexpr off_t kMostOutput = off_t{1} << 20;
/// How long the kernel may take to end a process. One that hangs in a driver's call stays.
constexpr milliseconds kEnding{1000};

/// A file in memory for an output of the child, which cannot grow: nobody has to read while the
/// child runs.
class Output {
 public:
  Output() : file_(memfd_create("output", MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
    if (file_ >= 0 && ftruncate(file_, kMostOutput) == 0 &&
        fcntl(file_, F_ADD_SEALS, F_SEAL_GROW) == 0) {
      return;
    }
    const int why = errno;
    if (file_ >= 0) close(file_);
    throw std::system_error(why, std::generic_category(), "no file for an output can be made");
  }
  ~Output() { close(file_); }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  [[nodiscard]] int file() const noexcept { return file_; }
  /// What the child has written: the place in the file is common to both.
  [[nodiscard]] std::string text() const {
    std::string text(static_cast<std::size_t>(std::max<off_t>(lseek(file_, 0, SEEK_CUR), 0)), '\0');
    const ssize_t count = pread(file_, text.data(), text.size(), 0);
    text.resize(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    return text;
  }

 private:
  const int file_;
};

/// Returns how the process ended; nothing if it has not by `end`. Asks again and again: the
/// children are few and take much longer than the time between.
std::optional<int> wait_for(pid_t process, Clock::time_point end) {
  constexpr milliseconds kBetween{2};
  int status = 0;
  while (waitpid(process, &status, WNOHANG) != process) {
    if (Clock::now() >= end) return std::nullopt;
    std::this_thread::sleep_for(kBetween);
  }
  return status;
}

/// In the child: no input, the outputs as its own, and an end with its parent.
void become_child(pid_t parent, const Output& out, const Output& err) {
  (void)setpgid(0, 0);
  (void)prctl(PR_SET_PDEATHSIG, SIGKILL);  // also where SIGKILL ends us
  if (getppid() != parent) _exit(127);     // that was before this call
  const rlimit none{.rlim_cur = 0, .rlim_max = 0};
  (void)setrlimit(RLIMIT_CORE, &none);
  const int input = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (input < 0) close(STDIN_FILENO);
  (void)dup2(input, STDIN_FILENO);
  (void)dup2(out.file(), STDOUT_FILENO);
  (void)dup2(err.file(), STDERR_FILENO);
  // It may need all files that it is allowed.
  for (const int file : {input, out.file(), err.file()}) close(file);
}

/// Starts `child`, which does not return, in a process group of its own, and waits for its end.
Bounded run_child(const std::function<void()>& child, milliseconds limit) {
  const Clock::time_point end = time_after_now(limit);
  const Output out;
  const Output err;
  (void)std::signal(SIGCHLD, SIG_DFL);  // if our caller ignored it, the kernel would reap the child
  const pid_t parent = getpid();
  const pid_t process = fork();
  if (process < 0) {
    throw std::system_error(errno, std::generic_category(), "no process can be made (ulimit -u)");
  }
  if (process == 0) {
    become_child(parent, out, err);
    child();
    _exit(127);
  }
  (void)setpgid(process, process);  // whoever of the two comes first
  const std::optional<int> status = wait_for(process, end);
  (void)kill(-process, SIGKILL);  // also what it left behind
  Bounded result{.out = {}, .err = {}};
  if (!status) {
    result.answer = Answer::kTimedOut;
    (void)wait_for(process, Clock::now() + kEnding);
  } else if (WIFSIGNALED(*status)) {
    result.answer = Answer::kCrashed;
    result.signal = WTERMSIG(*status);
  } else {
    result.exit_code = WEXITSTATUS(*status);
  }
  result.out = out.text();
  result.err = err.text();
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
