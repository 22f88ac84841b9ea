#pragma once

// What `weir top` shows, as text. Pure.

#include <cstddef>
#include <string>

#include "tools/weir/live/top.hpp"

namespace weir::cli {

struct Screen {
  std::size_t width = 80;  ///< columns; no line is longer
  std::size_t height = 0;  ///< lines; 0: as many as there are
  bool utf8 = false;       ///< the terminal shows it: bars and the history are drawn in blocks
};

/// Totals, a heading, and a line for each program. Columns that have no room are left out, the
/// least important first. Every line ends with a newline and none with a space.
[[nodiscard]] std::string top_text(const Top& top, const Screen& screen);

/// `share` of `width` columns filled; above 1 all of them.
[[nodiscard]] std::string bar(double share, std::size_t width, bool utf8);
/// The last kLiveHistory of `values` in `width` columns, the newest on the right. A column's height
/// is the largest of its values, the highest column that of the largest of all.
[[nodiscard]] std::string sparkline(const std::vector<std::uint64_t>& values, std::size_t width,
                                    bool utf8);

}  // namespace weir::cli
