#pragma once

// Makes the words and tables of a page about one process: the analysis's figures as JSON.

#include <nlohmann/json.hpp>
#include <string_view>

#include "tools/timeline/page/picture.hpp"

namespace weir::timeline {

/// Returns name, notes, summary, out-of-memory, largest holders, idle by cause, barriers and tasks.
[[nodiscard]] nlohmann::ordered_json tables_of(const ReportFigures& figures);

/// Cuts a text to at most `most` bytes, at a character boundary, and appends an ellipsis if it is
/// cut.
[[nodiscard]] std::string shorten(std::string_view text, std::size_t most);
/// The most bytes of a program's text that a page keeps.
inline constexpr std::size_t kLongestName = 400;

}  // namespace weir::timeline
