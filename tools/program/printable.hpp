#pragma once

// Strangers' text on a terminal: what could move the cursor or turn the writing around is shown and
// not done. Widths are in columns of a terminal. Pure.

#include <cstddef>
#include <string>
#include <string_view>

namespace weir::cli {

/// Controls, bytes that are no UTF-8 and marks of direction as `\x1b`, `\u202e`. Without `utf8`,
/// the rest of what is not ASCII as `?`.
[[nodiscard]] std::string printable(std::string_view text, bool utf8);

/// Columns that a printable text takes.
[[nodiscard]] std::size_t columns_of(std::string_view text);

enum class Align { kLeft, kRight };
/// A printable text, cut or filled with spaces to exactly `columns`.
[[nodiscard]] std::string fitted(std::string_view text, std::size_t columns, Align align);

}  // namespace weir::cli
