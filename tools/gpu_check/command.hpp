#pragma once

// The commands of weir-gpu: its own, and the programs that were put into it.

namespace weir::gpu_check {

struct Command {
  const char* name;
  const char* what;  ///< one line of the help
  /// As a `main` of its own; `argv[0]` is for its messages.
  int (*run)(int argc, char** argv);
};

/// Prints what the machine has; with --json FILE for a program too, where - is standard output and
/// people read standard error. 2 where no GPU answers, and says why.
int run_info(int argc, char** argv);
/// Runs the suites that need a GPU. 2 where nothing is selected.
int run_tests(int argc, char** argv);
/// Prints, as JSON, what only a driver with a GPU can tell. 2 where no GPU answers, and says why.
int run_facts(int argc, char** argv);
/// Records known work on the GPU into a file, and prints as JSON what the timeline has of it; or
/// counts a timeline's kernels and copies.
int run_timeline(int argc, char** argv);

}  // namespace weir::gpu_check
