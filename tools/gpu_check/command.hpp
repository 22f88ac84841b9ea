#pragma once

// The commands of weir-gpu: its own, and the programs linked into it.

namespace weir::gpu_check {

struct Command {
  const char* name;
  const char* what;  ///< one line of the help
  /// Works as a `main` of its own; messages use `argv[0]`.
  int (*run)(int argc, char** argv);
};

/// Prints what the machine has. --json FILE writes it for programs; with -, JSON goes to standard
/// output and text for people to standard error. Returns 2 and says why if no GPU answers.
int run_info(int argc, char** argv);
/// Prints, as JSON, what only a driver with a GPU can answer. Returns 2 and says why if no GPU
/// answers.
int run_facts(int argc, char** argv);

}  // namespace weir::gpu_check
