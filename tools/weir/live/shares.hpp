#pragma once

// The shared budgets that `weir ps` shows. Pure.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "allocator/share/share.hpp"
#include "tools/program/report_table.hpp"

namespace weir::cli {

/// Returns a table with a line for each process in each share.
[[nodiscard]] ReportTable shares_table(const std::vector<ShareReport>& shares);

/// Returns a line for each share that cannot be read.
[[nodiscard]] std::string share_faults_text(const std::vector<ShareReport>& shares);

/// Returns the same figures as a JSON list.
[[nodiscard]] nlohmann::json shares_json(const std::vector<ShareReport>& shares);

}  // namespace weir::cli
