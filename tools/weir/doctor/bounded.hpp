#pragma once

// Runs something in a child process that cannot outlive its time: a driver, a loader or an
// interpreter may hang or crash, and `weir doctor` must say so instead. Call from one thread, in a
// process without others.

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "tools/weir/doctor/facts.hpp"

namespace weir::cli::doctor {

struct Bounded {
  Answer answer = Answer::kCame;
  int exit_code = 0;
  int signal = 0;  ///< that ended it; zero if it exited, or was ended for its time
  std::string out;
  std::string err;
};

/// Runs a program with these arguments, the first of which is its name, and these `NAME=value`
/// lines. Its standard input is empty. Its whole process group is ended with it; a signal that ends
/// us ends the program itself. It can write 1 MiB to each output. Throws std::system_error if no
/// process can be made; a program that cannot be started has exit code 127.
[[nodiscard]] Bounded run_program(const std::string& path, std::vector<std::string> words,
                                  std::vector<std::string> environment,
                                  std::chrono::milliseconds limit);

/// Runs `body` in a copy of this process and returns its result as `out`. An exception ends the
/// copy with exit code 1 and its message as the last line of `err`. Throws like run_program, and
/// std::bad_alloc where `body` does.
[[nodiscard]] Bounded run_function(const std::function<std::string()>& body,
                                   std::chrono::milliseconds limit);

}  // namespace weir::cli::doctor
