#pragma once

// What `weir-gpu bench --json FILE` wrote: each kernel's time and its floor, the least time that
// the bytes it has to move or the arithmetic it has to do can take on this device.
//
//   {"kernels": [{"name": "sgd 2048x512", "time_us": 12.5, "floor_us": 10.0, "most": 1.5}]}
//
// `most` is the ratio that is aimed at, and may be missing.

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace weir::gpu_check {

struct KernelFigures {
  std::string name;
  double time_us = 0;
  double floor_us = 0;
  std::optional<double> most;

  [[nodiscard]] double ratio() const { return time_us / floor_us; }
  [[nodiscard]] bool met() const { return !most || ratio() <= *most; }
};

/// Error for a time or a floor that is not above zero; nlohmann's exception for another file.
[[nodiscard]] std::vector<KernelFigures> read_bench(const nlohmann::json& figures);

}  // namespace weir::gpu_check
