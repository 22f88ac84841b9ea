#pragma once

// Times as texts of settings: `20ms`.

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace weir {

/// Parses a whole number with a unit (s, ms, us), `20ms`: above zero, up to an hour. Returns
/// nothing for any other text.
[[nodiscard]] std::optional<std::chrono::nanoseconds> parse_time(std::string_view text);
/// Returns a text that parse_time reads as the same time of whole microseconds: `1500us`, `20ms`.
[[nodiscard]] std::string exact_time(std::chrono::nanoseconds time);

}  // namespace weir
