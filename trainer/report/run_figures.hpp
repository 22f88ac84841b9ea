#pragma once

// Figures that every run has, as rows of a table and as JSON.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "tools/program/report_table.hpp"
#include "trainer/run/train.hpp"

namespace weir::run_figures {

/// The legend below the figures of a run.
inline constexpr std::string_view kLegend =
    "  peak reserved: most memory taken from the device; peak held: most of it in use; host "
    "staging: "
    "host memory for copies; dispatch stalls: how often the program was held back, and how long.";

[[nodiscard]] double seconds_of(std::chrono::nanoseconds time);
/// Returns the waits of the pool.
/// Returns the throttle-caused idle time as a share of the run.
[[nodiscard]] double caused_share(const TrainResult& r);

[[nodiscard]] std::string percent(double share);
[[nodiscard]] std::string seconds(std::chrono::nanoseconds time);
[[nodiscard]] std::string milliseconds(std::chrono::nanoseconds time);

/// Returns the stalls by cause, without causes that held nothing back.
[[nodiscard]] std::string stalls_by_cause(const TrainResult& r);
/// Returns how long the pool was at each PressureLevel.
[[nodiscard]] std::string time_at_levels(const TrainResult& r);
/// Returns the throttle-caused idle time, and its share of the run.
[[nodiscard]] std::string caused_idle(const TrainResult& r);
/// Returns how the target moved; only one that adapts does.
[[nodiscard]] std::string target(const RunAhead& chosen, const TrainResult& r);
/// Returns the arena, and the batches that were submitted from it.
[[nodiscard]] std::string static_memory(const StaticFigures& f);
/// Adds what held dispatch back. Only `throttled` admits, so only it has the last three rows.
void add_throttling(std::vector<Fact>& rows, const PolicyOptions& policy, const TrainResult& r);

// Below: report.cpp, in which programs without JSON have no part.

/// Members common to all runs.
[[nodiscard]] nlohmann::json memory_json(const TrainResult& r);
/// The same with those of training.
[[nodiscard]] nlohmann::json result_json(const TrainResult& r);
/// Null if nothing was recorded.
[[nodiscard]] nlohmann::json timeline_json(const TrainResult& r);

}  // namespace weir::run_figures
