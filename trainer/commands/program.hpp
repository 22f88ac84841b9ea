#pragma once

namespace weir {

/// weir-train without its `main`, of which several programs are made: finds the subcommand and runs
/// it. The exit code; throws UsageError and what a run may throw.
int run_program(int argc, char** argv);

}  // namespace weir
