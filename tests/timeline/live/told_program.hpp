#pragma once

// A program that uses CUDA as a test commands (budget_program.cpp), with libweir.so.

#include <string>
#include <utility>

#include "support/child_process.hpp"

namespace weir::timeline::testing {

class ToldProgram {
 public:
  explicit ToldProgram(weir::testing::Variables variables)
      : program_({}, {.program = BUDGET_PROGRAM,
                      .environment = with_library(std::move(variables)),
                      .stdin_is_pipe = true}) {}

  [[nodiscard]] std::string pid() const { return std::to_string(program_.pid()); }
  /// Its answer to a line.
  std::string tell(const std::string& line) {
    program_.tell(line + "\n");
    return program_.read_line();
  }
  void send(int signal) const { program_.send(signal); }
  /// Closes its input and waits for its end. Returns the exit code.
  int end() {
    program_.end_input();
    const weir::testing::Finished end = program_.wait();
    return end.signal != 0 ? 128 + end.signal : end.exit_code;
  }

 private:
  static weir::testing::Variables with_library(weir::testing::Variables variables) {
    variables.emplace("LD_PRELOAD", SWAP_IN);
    return variables;
  }

  weir::testing::ChildProcess program_;
};

}  // namespace weir::timeline::testing
