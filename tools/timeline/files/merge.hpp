#pragma once

// Several recordings as one.

#include <vector>

#include "tools/timeline/model/timeline.hpp"

namespace weir::timeline {

/// All processes on one clock, whose zero is the earliest one; by rank, host and pid. Recordings of
/// one machine are joined by its monotonic clock, others by the time of day. One that has neither
/// begins with the earliest, and a kNote record says so. UsageError where two are the same
/// recording, or lie more than a year apart.
[[nodiscard]] Timeline merge(std::vector<Timeline> timelines);

}  // namespace weir::timeline
