#pragma once

// Weights in a file; docs/data.md describes the bytes.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weir {

/// A model's widths, input first, and its parameters in the order W_0, b_0, W_1, … with
/// W_l [widths[l] × widths[l+1]].
struct SavedWeights {
  std::vector<std::size_t> widths;
  std::vector<std::vector<float>> parameters;
};

/// Returns the contents of a file. Throws UsageError if the parameters do not match the widths.
[[nodiscard]] std::string encode_weights(const SavedWeights& weights);

/// Reads the whole file. Throws a UsageError of one line (option, file, offset, expected, found) if
/// it is no weights file, is cut short, too long or damaged.
[[nodiscard]] SavedWeights read_weights(const std::string& option, const std::string& path);

/// Returns `64 -> 256 -> 128 -> 10`.
[[nodiscard]] inline std::string format_widths(std::span<const std::size_t> widths) {
  std::string text;
  for (const std::size_t width : widths) {
    text += (text.empty() ? "" : " -> ") + std::to_string(width);
  }
  return text;
}

}  // namespace weir
