#pragma once

// Where `weir top`, `weir ps` and `weir set` look for programs, and what they print about programs
// that they cannot show; the budgets that programs share.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "allocator/base/setting.hpp"
#include "allocator/share/share.hpp"
#include "tools/program/report_table.hpp"
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

/// Returns a table with a line for each process in each share.
[[nodiscard]] ReportTable shares_table(const std::vector<ShareReport>& shares);

/// Returns a line for each share that cannot be read.
[[nodiscard]] std::string share_faults_text(const std::vector<ShareReport>& shares);

/// Returns the same figures as a JSON list.
[[nodiscard]] nlohmann::json shares_json(const std::vector<ShareReport>& shares);

}  // namespace weir::cli
