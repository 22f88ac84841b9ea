#pragma once

// What follows from the facts of a machine: for each thing checked, whether it works and, if not,
// one line of what to do. Pure.

#include <vector>

#include "allocator/base/setting.hpp"
#include "tools/weir/doctor/facts.hpp"
#include "tools/weir/doctor/finding.hpp"

namespace weir::cli::doctor {

/// All groups, in the order in which they are printed. A group whose facts are missing has that as
/// its only finding; a setting has one finding, whichever groups judge it.
[[nodiscard]] std::vector<Finding> check_all(const Facts& facts);

[[nodiscard]] std::vector<Finding> check_system(const SystemFacts& facts);
/// NVIDIA's driver and devices, NVML, cuBLAS and CUPTI. Of the variables it reads
/// CUDA_VISIBLE_DEVICES and WEIR_CUPTI.
[[nodiscard]] std::vector<Finding> check_driver(const DriverFacts& facts,
                                                const Variables& variables);
/// libweir.so, and a small program with it.
[[nodiscard]] std::vector<Finding> check_library(const LibraryFacts& facts, const Places& places);
/// The interpreter and its frameworks. `driver_version` is 13000 for 13.0, zero if unknown.
[[nodiscard]] std::vector<Finding> check_python(const PythonFacts& facts, int driver_version,
                                                const Places& places);
/// Weir's variables, and MXNet's that Weir reads.
[[nodiscard]] std::vector<Finding> check_settings(const SettingsFacts& facts, const Places& places);
[[nodiscard]] std::vector<Finding> check_limits(const LimitsFacts& facts);
/// Other variables that change what a GPU program, or its allocator, does.
[[nodiscard]] std::vector<Finding> check_environment(const EnvironmentFacts& facts);

/// Whether the report speaks of PyTorch's plug: PyTorch is installed, or nobody could look.
[[nodiscard]] bool concerns_torch(const Facts& facts, const std::vector<Finding>& findings);

/// Whether this CUDA_VISIBLE_DEVICES, null if it is not set, leaves a program no GPU.
[[nodiscard]] bool hides_all(const char* visible);

/// Adds what became of the trial, as `check`.
void add_trial(Findings& found, const std::string& check, const Trial& trial);

/// Reads `variables`, which must outlive it.
[[nodiscard]] Environment environment_of(const Variables& variables);

}  // namespace weir::cli::doctor
