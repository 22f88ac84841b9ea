#pragma once

// Where `weir top`, `weir ps` and `weir set` look for programs, and what they print about programs
// that they cannot show.

#include <cstdint>
#include <string>
#include <vector>

#include "allocator/base/setting.hpp"
#include "tools/timeline/live/reader.hpp"

namespace weir::cli {

/// Returns where to look: the user's own folders; for root, all users'.
[[nodiscard]] std::vector<timeline::LiveFolder> places_of(const Environment& environment);

/// Returns a user's name, or the number if there is none.
[[nodiscard]] std::string user_name(std::uint32_t uid);

/// Returns at most ten printable lines, one for each invalid file.
[[nodiscard]] std::string faults_text(const std::vector<timeline::LiveFault>& faults);

/// Returns one line that says why `survey` has no such program to ask.
[[nodiscard]] std::string why_missing(const timeline::LiveSurvey& survey, std::uint32_t pid);

}  // namespace weir::cli
