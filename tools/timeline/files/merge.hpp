#pragma once

// Merges several recordings into one.

#include <vector>

#include "tools/timeline/model/timeline.hpp"

namespace weir::timeline {

/// Puts all processes on one clock, whose zero is the earliest one. Sorts them by rank, host and
/// pid. Aligns recordings of one machine by its monotonic clock, others by the time of day. A
/// recording without either starts with the earliest one, and a kNote record says so. Throws
/// UsageError if two recordings are the same or more than a year apart.
[[nodiscard]] Timeline merge(std::vector<Timeline> timelines);

}  // namespace weir::timeline
