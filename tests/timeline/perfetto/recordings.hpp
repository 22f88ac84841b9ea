#pragma once

// Recordings for tests of formats: random ones of every kind, and one like a training run.

#include <cstdint>
#include <string>
#include <vector>

#include "tools/timeline/model/timeline.hpp"

namespace weir::testing {

/// One to three of ../chrome/random_process.hpp.
[[nodiscard]] std::vector<timeline::Process> random_processes(std::uint64_t seed,
                                                              std::size_t records);
/// The records of a training run: for each operation a submission, an execution, 1.5 allocations
/// and as many frees; batches; a pool with consistent accounting.
[[nodiscard]] timeline::Process training_run(std::uint64_t seed, std::size_t operations);
/// A profiler's records of a GPU: two launches, a graph of two kernels, a call that starts nothing,
/// a kernel without a call, and an operation with the number of a launch. Then a second window with
/// the same numbers: a launch, and a kernel without a call.
[[nodiscard]] timeline::Process profiled_run();
/// Writes all of it to one file, a flush at a time as a recorder does.
void write_all(const std::vector<timeline::Process>& processes, timeline::Writer& writer);

}  // namespace weir::testing
