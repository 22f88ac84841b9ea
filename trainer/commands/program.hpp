#pragma once

namespace weir {

/// weir-train without `main`, shared by several programs: finds the subcommand, runs it and returns
/// the exit code. Throws UsageError and whatever a run throws.
int run_program(int argc, char** argv);

}  // namespace weir
