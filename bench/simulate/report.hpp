#pragma once

// The table of a comparison, as text and JSON, and pictures of its runs (picture.cpp).

#include <span>
#include <string>
#include <vector>

#include "allocator/base/setting.hpp"
#include "bench/simulate/comparison.hpp"

namespace weir::simulate {

/// Returns the table, at most 100 columns wide unless `wide`, and under it which bounds `throttled`
/// misses.
[[nodiscard]] std::string table_text(const std::vector<Outcome>& outcomes, bool wide = false);
/// Returns the bounds that `throttled` misses and the policies that are better, a line each.
[[nodiscard]] std::string missed_text(const std::vector<Outcome>& outcomes);
/// Whether `throttled` keeps all bounds and no other policy is better.
[[nodiscard]] bool are_met(const std::vector<Outcome>& outcomes);
/// Returns the outcomes and the settings as JSON. Times in ns, sizes in bytes.
[[nodiscard]] std::string outcomes_json(const std::vector<Outcome>& outcomes,
                                        std::span<const SettingLine> settings);
/// Returns the workloads and policies by name, and what they are.
[[nodiscard]] std::string list_text();

/// Returns the memory, with a line for each outcome, of which there must be one. They need series,
/// and the same workload and budget.
[[nodiscard]] std::string picture_svg(const std::vector<Outcome>& outcomes);

/// Returns the run-ahead target, and the memory below it. The
/// outcome needs a series.
[[nodiscard]] std::string target_picture_svg(const Outcome& outcome);

}  // namespace weir::simulate
