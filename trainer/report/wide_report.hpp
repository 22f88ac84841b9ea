#pragma once

// Formats a wide run for people (tables) and for programs (JSON, the same figures).

#include <string>
#include <vector>

#include "tools/timeline/analysis/tasks.hpp"
#include "trainer/wide/wide_settings.hpp"
#include "trainer/wide/wide_train.hpp"

namespace weir {

/// What only the run's timeline knows; empty without one.
struct WideTimeline {
  std::vector<timeline::TaskTable> tasks;  ///< time by task
  timeline::HiddenCopies copies;           ///< of the measured time, on all devices
};

/// Reads it back from the file, if the run recorded one. Throws UsageError if that cannot be read.
[[nodiscard]] WideTimeline read_wide_timeline(const WideResult& result);

/// Returns `batch 50, time 1.23 s, …` in one line.
[[nodiscard]] std::string format_pace(const PaceLine& line);
/// Returns `network 250000 -> 1024 -> 512 -> 200000, 359,125,824 parameters`.
[[nodiscard]] std::string format_network(const WideSettings& settings);
/// `wide` adds the columns with details.
[[nodiscard]] std::string format_wide(const WideSettings& settings, const WideResult& result,
                                      const WideTimeline& timeline, bool wide = false);
[[nodiscard]] std::string wide_json(const WideSettings& settings, const WideResult& result,
                                    const WideTimeline& timeline);

}  // namespace weir
