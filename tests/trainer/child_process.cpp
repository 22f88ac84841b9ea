#include "child_process.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <utility>

#include "tools/program/argument_pointers.hpp"

namespace weir::testing {
namespace {

using namespace std::chrono_literals;
/// Far longer than any of these runs takes, also under a sanitizer.
constexpr auto kDeadline = 100s;

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

ChildProcess::ChildProcess(const std::vector<std::string>& arguments, ChildOptions options) {
  const std::string program = options.program.empty() ? WEIR_TRAIN_PROGRAM : options.program;
  std::vector<std::string> words{program};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<std::string> lines = environment_lines(std::move(options.environment));
  const Pipe out = make_pipe();
  const Pipe err = make_pipe();
  if (options.stdout_is_full) fill(out.write_end);
  if (options.stdout_has_no_reader) close(out.read_end);

  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, options.stdin_path.c_str(), O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, err.write_end, STDERR_FILENO);
  if (options.stdout_is_closed) {
    posix_spawn_file_actions_addclose(&files, STDOUT_FILENO);
  } else if (options.stdout_path.empty()) {
    posix_spawn_file_actions_adddup2(&files, out.write_end, STDOUT_FILENO);
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
  for (const int signal : {SIGINT, SIGTERM, SIGPIPE, SIGXFSZ}) sigaddset(&signals, signal);
  posix_spawnattr_setsigdefault(&attributes, &signals);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);

  const int error = posix_spawn(&pid_, program.c_str(), &files, &attributes,
                                argument_pointers(words).data(), argument_pointers(lines).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  close(out.write_end);
  close(err.write_end);
  out_ = options.stdout_has_no_reader ? -1 : out.read_end;
  err_ = err.read_end;
  if (error != 0) throw std::runtime_error("cannot start " + program);
}

ChildProcess::~ChildProcess() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  close_pipes();
}

void ChildProcess::close_pipes() {
  for (int* const descriptor : {&out_, &err_}) {
    if (*descriptor >= 0) close(std::exchange(*descriptor, -1));
  }
}

bool ChildProcess::read_more() {
  std::array<pollfd, 2> streams{{{out_, POLLIN, 0}, {err_, POLLIN, 0}}};
  if (out_ < 0 && err_ < 0) return false;
  const auto limit = std::chrono::duration_cast<std::chrono::milliseconds>(kDeadline);
  if (poll(streams.data(), streams.size(), static_cast<int>(limit.count())) <= 0) {
    ADD_FAILURE() << "weir-train hangs; standard error so far:\n" << result_.err;
    kill(pid_, SIGKILL);
    return false;
  }
  if (streams[0].revents != 0) drain(out_, result_.out);
  if (streams[1].revents != 0) drain(err_, result_.err);
  return true;
}

void ChildProcess::await_error_text(std::string_view text) {
  while (result_.err.find(text) == std::string::npos) {
    if (err_ >= 0 && read_more()) continue;
    FAIL() << "standard error ended without '" << text << "':\n" << result_.err;
  }
}

void ChildProcess::send(int signal) const { ASSERT_EQ(kill(pid_, signal), 0); }

Finished ChildProcess::wait() {
  while (read_more()) continue;
  int status = 0;
  waitpid(std::exchange(pid_, -1), &status, 0);
  if (WIFEXITED(status)) result_.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) result_.signal = WTERMSIG(status);
  return std::move(result_);
}

Finished run_weir_train(const std::vector<std::string>& arguments, Variables environment) {
  return ChildProcess(arguments, {.environment = std::move(environment)}).wait();
}

}  // namespace weir::testing
