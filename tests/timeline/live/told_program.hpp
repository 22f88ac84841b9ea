#pragma once

// A program that uses CUDA as a test commands (budget_program.cpp), with libweir.so.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <map>
#include <string>

namespace weir::timeline::testing {

class ToldProgram {
 public:
  explicit ToldProgram(const std::map<std::string, std::string>& variables) {
    int to[2] = {-1, -1};
    int from[2] = {-1, -1};
    if (pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0) return;
    pid_ = fork();
    if (pid_ == 0) {
      dup2(to[0], STDIN_FILENO);
      dup2(from[1], STDOUT_FILENO);
      for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
      setenv("LD_PRELOAD", SWAP_IN, 1);
      execl(BUDGET_PROGRAM, BUDGET_PROGRAM, nullptr);
      _exit(127);
    }
    close(to[0]);
    close(from[1]);
    to_ = fdopen(to[1], "w");
    from_ = fdopen(from[0], "r");
  }
  ~ToldProgram() {
    if (pid_ > 0) (void)end();
  }
  ToldProgram(const ToldProgram&) = delete;
  ToldProgram& operator=(const ToldProgram&) = delete;

  [[nodiscard]] std::string pid() const { return std::to_string(pid_); }
  /// Its answer to a line.
  std::string tell(const std::string& line) {
    std::fprintf(to_, "%s\n", line.c_str());
    std::fflush(to_);
    char text[64] = "";
    if (std::fgets(text, sizeof text, from_) == nullptr) return "it has ended";
    std::string answer = text;
    answer.resize(answer.find_last_not_of('\n') + 1);
    return answer;
  }
  void send(int signal) const { kill(pid_, signal); }
  /// Closes its input and waits for its end. Returns the exit code.
  int end() {
    std::fclose(to_);
    std::fclose(from_);
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  pid_t pid_ = -1;
  std::FILE* to_ = nullptr;
  std::FILE* from_ = nullptr;
};

}  // namespace weir::timeline::testing
