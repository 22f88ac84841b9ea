#pragma once

// The shared budgets that `weir ps` shows. Pure.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "allocator/share/share.hpp"

namespace weir::cli {

/// Returns a table with a line for each process in each share; empty if there is none. `wide`
/// does not cut names to 100 columns.
[[nodiscard]] std::string shares_text(const std::vector<ShareReport>& shares, bool wide);

/// Returns a line for each share that cannot be read.
[[nodiscard]] std::string share_faults_text(const std::vector<ShareReport>& shares);

/// Returns the same figures as a JSON list.
[[nodiscard]] nlohmann::json shares_json(const std::vector<ShareReport>& shares);

}  // namespace weir::cli
