#pragma once

// What `weir top` shows, as text. Pure.

#include <cstddef>
#include <string>

#include "tools/weir/live/top.hpp"

namespace weir::cli {

struct Screen {
  std::size_t width = 80;  ///< columns; no line is longer
  std::size_t height = 0;  ///< lines; 0: no limit
  bool utf8 = false;       ///< the terminal shows UTF-8: draws bars and history with blocks
};

/// A width in which all columns fit.
inline constexpr std::size_t kEveryColumn = 200;

/// Returns totals, a heading, and a line for each program; below them what the columns mean, if all
/// of that fits. A column of sizes has one unit, in its heading. Columns that do not fit are left
/// out, least important first. Every line ends with a newline and none with a space. No colours.
[[nodiscard]] std::string top_text(const Top& top, const Screen& screen);

/// Returns a bar with `share` of `width` columns filled; above 1, all.
[[nodiscard]] std::string bar(double share, std::size_t width, bool utf8);
/// Draws the last kLiveHistory of `values` in `width` columns, newest on the right. A column shows
/// its largest value, scaled to the largest of all.
[[nodiscard]] std::string sparkline(const std::vector<std::uint64_t>& values, std::size_t width,
                                    bool utf8);

}  // namespace weir::cli
