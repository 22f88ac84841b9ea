#pragma once

// The machine and the build of a run's figures.

#include <nlohmann/json.hpp>
#include <string>

namespace weir::gpu_check {

/// What the driver says, as `weir-gpu info --json` prints it. If `gpus` is empty, `why` is one line
/// with the reason and the remedy.
struct Machine {
  nlohmann::json found;
  std::string why;
};

/// Asks the driver. Takes no device memory. Does not throw if there is no GPU.
[[nodiscard]] Machine find_gpus();

}  // namespace weir::gpu_check
