#pragma once

// Formats a wide run for people (tables) and for programs (JSON, the same figures).

#include <string>
#include <vector>

#include "tools/timeline/analysis/tasks.hpp"
#include "trainer/wide/wide_result.hpp"
#include "trainer/wide/wide_settings.hpp"

namespace weir {

/// Time by task; empty without a timeline.
using WideTasks = std::vector<timeline::TaskTable>;

/// Reads the tasks back from the run's timeline, if it recorded one. Throws UsageError if that
/// cannot be read.
[[nodiscard]] WideTasks read_tasks(const WideResult& result);

/// Returns `batch 50, time 1.23 s, …` in one line.
[[nodiscard]] std::string format_pace(const PaceLine& line);
/// Returns `network 250000 -> 1024 -> 512 -> 200000, 359,125,824 parameters`.
[[nodiscard]] std::string format_network(const WideSettings& settings);
[[nodiscard]] std::string format_wide(const WideSettings& settings, const WideResult& result,
                                      const WideTasks& tasks);
[[nodiscard]] std::string wide_json(const WideSettings& settings, const WideResult& result,
                                    const WideTasks& tasks);

}  // namespace weir
