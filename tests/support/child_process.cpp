#include "support/child_process.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <utility>

#include "tools/program/argument_pointers.hpp"

namespace weir::testing {
namespace {

struct Pipe {
  int read_end = -1;
  int write_end = -1;
};

Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  return {ends[0], ends[1]};
}

void fill(int write_end) {
  const int flags = fcntl(write_end, F_GETFL);
  fcntl(write_end, F_SETFL, flags | O_NONBLOCK);
  const std::array<char, 4096> block{};
  while (write(write_end, block.data(), block.size()) > 0) continue;
  while (write(write_end, block.data(), 1) > 0) continue;
  fcntl(write_end, F_SETFL, flags);
}

/// The test's variables, and the child's settings for a sanitizer's reports.
std::vector<std::string> environment_lines(Variables variables) {
  for (const char* name : {"ASAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS"}) {
    if (const char* value = std::getenv(name)) variables.emplace(name, value);
  }
  variables.emplace("CUDA_VISIBLE_DEVICES", "-1");
  // Otherwise each child sleeps for a second at its end, for races of a late thread.
  variables["TSAN_OPTIONS"] += ":atexit_sleep_ms=0";
  std::vector<std::string> lines;
  for (const auto& [name, value] : variables) lines.emplace_back(name).append("=").append(value);
  return lines;
}

/// Appends available output; closes the stream at its end.
void drain(int& descriptor, std::string& text) {
  std::array<char, 4096> block{};
  const ssize_t count = read(descriptor, block.data(), block.size());
  if (count > 0) {
    text.append(block.data(), static_cast<std::size_t>(count));
    return;
  }
  close(descriptor);
  descriptor = -1;
}

}  // namespace

ChildProcess::ChildProcess(const Words& arguments, ChildOptions options) {
  const std::string program =
      options.program.empty() ? internal::tested_program() : options.program;
  Words words{program};
  words.insert(words.end(), arguments.begin(), arguments.end());
  Words lines = environment_lines(std::move(options.environment));
  const Pipe in = make_pipe();
  const Pipe out = make_pipe();
  const Pipe err = make_pipe();
  if (options.stdout_is_full) fill(out.write_end);
  if (options.stdout_has_no_reader) close(out.read_end);

  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  if (options.terminal >= 0) {
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, ptsname(options.terminal), O_RDWR, 0);
    posix_spawn_file_actions_adddup2(&files, STDIN_FILENO, STDERR_FILENO);
  } else if (options.stdin_is_pipe) {
    posix_spawn_file_actions_adddup2(&files, in.read_end, STDIN_FILENO);
  } else {
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, options.stdin_path.c_str(), O_RDONLY, 0);
  }
  if (options.terminal < 0) posix_spawn_file_actions_adddup2(&files, err.write_end, STDERR_FILENO);
  if (options.stdout_is_closed) {
    posix_spawn_file_actions_addclose(&files, STDOUT_FILENO);
  } else if (options.stdout_path.empty()) {
    const int end = options.terminal >= 0 ? STDIN_FILENO : out.write_end;
    posix_spawn_file_actions_adddup2(&files, end, STDOUT_FILENO);
  } else {
    posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, options.stdout_path.c_str(),
                                     O_WRONLY | O_CREAT | O_TRUNC, 0600);
  }
  // The child must inherit no other file, and no ignored or blocked signal.
  posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t signals;
  sigemptyset(&signals);
  posix_spawnattr_setsigmask(&attributes, &signals);
  for (const int signal : {SIGINT, SIGTERM, SIGPIPE, SIGXFSZ, SIGHUP, SIGTSTP, SIGCONT, SIGWINCH}) {
    sigaddset(&signals, signal);
  }
  posix_spawnattr_setsigdefault(&attributes, &signals);
  int flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
  is_job_ = options.is_job || options.terminal >= 0;
  if (options.terminal >= 0) {
    flags |= POSIX_SPAWN_SETSID;  // its first terminal controls it
  } else if (options.is_job) {
    flags |= POSIX_SPAWN_SETPGROUP;
  }
  posix_spawnattr_setflags(&attributes, static_cast<short>(flags));

  const int error = posix_spawn(&pid_, program.c_str(), &files, &attributes,
                                argument_pointers(words).data(), argument_pointers(lines).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  close(in.read_end);
  close(out.write_end);
  close(err.write_end);
  in_ = in.write_end;
  out_ = options.stdout_has_no_reader ? -1 : out.read_end;
  err_ = err.read_end;
  if (options.terminal >= 0) {
    close(out_);
    out_ = dup(options.terminal);
  }
  if (error != 0) throw std::runtime_error("cannot start " + program);
}

ChildProcess::~ChildProcess() {
  if (pid_ > 0) {
    kill(is_job_ ? -pid_ : pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  close_pipes();
}

void ChildProcess::close_pipes() {
  for (int* const descriptor : {&in_, &out_, &err_}) {
    if (*descriptor >= 0) close(std::exchange(*descriptor, -1));
  }
}

void ChildProcess::tell(std::string_view text) const {
  EXPECT_EQ(write(in_, text.data(), text.size()), static_cast<ssize_t>(text.size()));
}

void ChildProcess::end_input() { close(std::exchange(in_, -1)); }

bool ChildProcess::read_more() {
  std::array<pollfd, 2> streams{{{out_, POLLIN, 0}, {err_, POLLIN, 0}}};
  if (out_ < 0 && err_ < 0) return false;
  if (poll(streams.data(), streams.size(), -1) <= 0) return errno == EINTR;
  if (streams[0].revents != 0) drain(out_, result_.out);
  if (streams[1].revents != 0) drain(err_, result_.err);
  return true;
}

void ChildProcess::await_in(const std::string& read, std::string_view text, std::size_t& seen) {
  for (;;) {
    const std::size_t at = read.find(text, seen);
    if (at != std::string::npos) {
      seen = at + text.size();
      return;
    }
    ASSERT_TRUE(read_more()) << "it ended without '" << text << "': " << read << result_.err;
  }
}

std::string ChildProcess::read_line() {
  std::size_t end = 0;
  while ((end = result_.out.find('\n', out_read_)) == std::string::npos) {
    if (!read_more()) return {};
  }
  return result_.out.substr(std::exchange(out_read_, end + 1), end - out_read_);
}

void ChildProcess::send(int signal) const { ASSERT_EQ(kill(pid_, signal), 0); }

bool ChildProcess::has_stopped() const {
  siginfo_t info{};
  EXPECT_EQ(waitid(P_PID, static_cast<id_t>(pid_), &info, WSTOPPED | WEXITED | WNOWAIT), 0);
  return info.si_code == CLD_STOPPED;
}

Finished ChildProcess::wait() {
  while (read_more()) continue;
  int status = 0;
  waitpid(std::exchange(pid_, -1), &status, 0);
  if (WIFEXITED(status)) result_.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) result_.signal = WTERMSIG(status);
  return std::move(result_);
}

Finished run_weir_train(const Words& arguments, Variables environment) {
  return ChildProcess(arguments, {.environment = std::move(environment)}).wait();
}

void expect_refused_in_one_line(const Finished& finished, const Words& parts, int code) {
  EXPECT_EQ(finished.exit_code, code) << finished.err;
  EXPECT_EQ(finished.out, "");
  EXPECT_TRUE(finished.err.starts_with("weir") && finished.err.ends_with('\n')) << finished.err;
  EXPECT_EQ(std::ranges::count(finished.err, '\n'), 1) << finished.err;
  for (const std::string& part : parts) {
    EXPECT_NE(finished.err.find(part), std::string::npos)
        << part << " is missing: " << finished.err;
  }
}

std::ptrdiff_t occurrences(std::string_view text, std::string_view part) {
  std::ptrdiff_t found = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos;
       at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

int run_this_program(const Words& arguments, const Variables& more) {
  Variables all = more;
  for (char** each = environ; *each != nullptr; ++each) {
    const std::string line = *each;
    all.emplace(line.substr(0, line.find('=')), line.substr(line.find('=') + 1));
  }
  const Finished end =
      ChildProcess(arguments, {.program = "/proc/self/exe", .environment = all}).wait();
  return end.exit_code;
}

}  // namespace weir::testing
