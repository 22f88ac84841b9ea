#pragma once

#include <chrono>
#include <string>

namespace weir {

/// Returns `time` as a message shows it: "2.5 s", cut to tenths.
[[nodiscard]] inline std::string in_seconds(std::chrono::nanoseconds time) {
  const auto tenths = std::chrono::duration_cast<std::chrono::milliseconds>(time).count() / 100;
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " s";
}

}  // namespace weir
