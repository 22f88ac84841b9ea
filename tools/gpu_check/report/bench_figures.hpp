#pragma once

// What `weir-gpu bench --json -` printed: each kernel's time and its floor, the time that its work
// takes at the rate of the device's own copy or product, measured in the same run.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace weir::gpu_check {

struct KernelFigures {
  std::string name;
  std::string shape;
  std::string floor_of;  ///< the row that gave the floor
  double median_us = 0;
  double floor_us = 0;

  [[nodiscard]] double ratio() const { return median_us / floor_us; }
  /// Whether it is such a row: its ratio is 1 and says nothing.
  [[nodiscard]] bool gives_floor() const { return floor_of == name; }
};

/// Error for a time or a floor that is not above zero; nlohmann's exception for another file.
[[nodiscard]] std::vector<KernelFigures> read_bench(const nlohmann::json& figures);

}  // namespace weir::gpu_check
