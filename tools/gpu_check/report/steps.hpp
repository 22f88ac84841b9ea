#pragma once

// The steps of a run, as tools/gpu-check writes them down: one line each, fields between tabs,
//
//   name  exit-code  seconds  limit-in-seconds  command line
//
// and for a step that was left out a `-` for the exit code and the reason for the command line.

#include <string>
#include <string_view>
#include <vector>

namespace weir::gpu_check {

struct Step {
  std::string name;
  std::string command;
  std::string left_out;  ///< why it did not run; empty: it ran
  int exit_code = 0;
  double seconds = 0;
  double limit = 0;

  [[nodiscard]] bool ran() const { return left_out.empty(); }
  [[nodiscard]] bool timed_out() const;
  [[nodiscard]] bool ok() const { return ran() && exit_code == 0; }
};

/// Error naming the line that is none.
[[nodiscard]] std::vector<Step> parse_steps(std::string_view text);

/// `ok`, `failed (exit 1)`, `stopped at its limit of 40 s` or `left out: reason`.
[[nodiscard]] std::string describe(const Step& step);

}  // namespace weir::gpu_check
