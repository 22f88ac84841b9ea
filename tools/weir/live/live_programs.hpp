#pragma once

// Where `weir top`, `weir ps` and `weir set` find programs, and what they say of those that they do
// not find.

#include <cstdint>
#include <string>
#include <vector>

#include "allocator/base/setting.hpp"
#include "tools/timeline/live/reader.hpp"

namespace weir::cli {

/// Where to look: the user's own folders; root looks at everybody's.
[[nodiscard]] std::vector<timeline::LiveFolder> places_of(const Environment& environment);

/// A user's name; the number where it has none.
[[nodiscard]] std::string user_name(std::uint32_t uid);

/// One line for each file that was not believed, at most ten, ready to be printed.
[[nodiscard]] std::string faults_text(const std::vector<timeline::LiveFault>& faults);

/// Why `survey` has no program of that number that can be asked. One line.
[[nodiscard]] std::string why_missing(const timeline::LiveSurvey& survey, std::uint32_t pid);

}  // namespace weir::cli
