#pragma once

// Compares what a timeline says of stretches of work with what is known of them.

#include <vector>

#include "tools/gpu_check/timeline_check/stretch.hpp"
#include "tools/timeline/model/timeline.hpp"

namespace weir::gpu_check {

/// A stretch according to the timeline.
struct RecordedStretch {
  Stretch launched;
  std::uint64_t recorded = 0;  ///< operations of its kind, found by batch or by time
  std::uint64_t joined = 0;    ///< those with its batch
  double sum_ms = 0;           ///< total length
  double span_ms = 0;          ///< from the first begin to the last end
  bool in_order = true;        ///< in launch order, without overlap
  double outside_us = 0;       ///< largest distance of an operation outside the stretch
};

struct TimelineComparison {
  std::vector<RecordedStretch> stretches;
  std::uint64_t strays = 0;  ///< kernels and copies that belong to no stretch
  std::uint64_t lost = 0;    ///< events dropped for lack of room
  bool complete = false;     ///< the recording has an end
};

/// Pure. Uses only the first process of the timeline.
[[nodiscard]] TimelineComparison compare(const timeline::Timeline& timeline,
                                         const std::vector<Stretch>& launched);

/// Counts of the device's own activity in a timeline.
struct ActivityCounts {
  std::uint64_t kernels = 0;
  std::uint64_t copies = 0;
  std::uint64_t lost = 0;
  bool complete = true;
};
/// Counts over all processes.
[[nodiscard]] ActivityCounts count_activity(const timeline::Timeline& timeline);

}  // namespace weir::gpu_check
