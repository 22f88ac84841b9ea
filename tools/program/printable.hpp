#pragma once

// Makes untrusted text safe for a terminal: escapes what could move the cursor or change the text's
// direction. Widths are in columns. Pure.

#include <cstddef>
#include <string>
#include <string_view>

namespace weir {

/// Escapes controls, invalid UTF-8 and marks of direction as `\x1b`, `\u202e`. Without `utf8`,
/// replaces other non-ASCII characters by `?`.
[[nodiscard]] std::string printable(std::string_view text, bool utf8);

[[nodiscard]] std::size_t columns_of(std::string_view text);

enum class Align { kLeft, kRight };
/// Cuts or pads a printable text to exactly `columns`.
[[nodiscard]] std::string fitted(std::string_view text, std::size_t columns, Align align);

}  // namespace weir
