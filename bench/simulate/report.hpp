#pragma once

// The table of a comparison, as text, JSON and CSV.

#include <string>
#include <vector>

#include "bench/simulate/comparison.hpp"

namespace weir::simulate {

/// Returns the table, and under it which bounds `throttled` misses.
[[nodiscard]] std::string table_text(const std::vector<Outcome>& outcomes);
/// Returns the outcomes as JSON. Times in ns, sizes in bytes.
[[nodiscard]] std::string outcomes_json(const std::vector<Outcome>& outcomes);
/// Returns lines `policy,time_ns,used_bytes,submitted`.
[[nodiscard]] std::string series_csv(const std::vector<Outcome>& outcomes);
/// Returns the workloads and policies by name, and what they are.
[[nodiscard]] std::string list_text();

}  // namespace weir::simulate
