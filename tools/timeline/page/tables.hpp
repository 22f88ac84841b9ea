#pragma once

// What a page says in words and tables about one process: the figures of the analysis, as JSON.

#include <nlohmann/json.hpp>
#include <string_view>

#include "tools/timeline/page/findings.hpp"

namespace weir::timeline {

/// Name, notes, summary, out-of-memory, largest holders, idle by cause, barriers and tasks.
[[nodiscard]] nlohmann::ordered_json tables_of(const Findings& findings);

/// At most `most` bytes of a text, with an ellipsis where it is cut; whole characters.
[[nodiscard]] std::string shorten(std::string_view text, std::size_t most);
/// Bytes of a program's text that a page keeps.
inline constexpr std::size_t kLongestName = 400;

}  // namespace weir::timeline
