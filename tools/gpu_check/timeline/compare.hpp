#pragma once

// What a timeline says of stretches of work, beside what is known of them.

#include <vector>

#include "tools/gpu_check/timeline/stretch.hpp"
#include "tools/timeline/model/timeline.hpp"

namespace weir::gpu_check {

/// A stretch as the timeline has it.
struct RecordedStretch {
  Stretch launched;
  std::uint64_t recorded = 0;  ///< operations of its kind, found by their batch or by their time
  std::uint64_t joined = 0;    ///< of those, with its batch
  double sum_ms = 0;           ///< of their lengths
  double span_ms = 0;          ///< from the begin of the first to the end of the last
  bool in_order = true;        ///< as they were launched, and none begins before the last ended
  double outside_us = 0;       ///< how far the worst lies before or after the stretch
};

struct TimelineComparison {
  std::vector<RecordedStretch> stretches;
  std::uint64_t strays = 0;  ///< kernels and copies of no stretch
  std::uint64_t lost = 0;    ///< events for which the recorder had no room
  bool complete = false;     ///< the recording has its end
};

/// Pure. Only the first process of the timeline counts.
[[nodiscard]] TimelineComparison compare(const timeline::Timeline& timeline,
                                         const std::vector<Stretch>& launched);

/// How much of the device's own activity a timeline has.
struct ActivityCounts {
  std::uint64_t kernels = 0;
  std::uint64_t copies = 0;
  std::uint64_t lost = 0;
  bool complete = true;
};
/// Of all its processes.
[[nodiscard]] ActivityCounts count_activity(const timeline::Timeline& timeline);

}  // namespace weir::gpu_check
