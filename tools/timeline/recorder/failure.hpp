#pragma once

// Makes a self-contained timeline of the last seconds.

#include <vector>

#include "tools/timeline/model/timeline.hpp"

namespace weir::timeline {

/// Returns the records of a window that ends now, as if the recording had begun with the window.
/// `live` is the current state from TimelineSource::record_live; `recent` has the window's events.
/// The state at the window's begin is derived from both and comes first. A block that was allocated
/// before the window and freed in it has no name. Inputs and result are sorted by `begin`.
[[nodiscard]] std::vector<TimelineRecord> begin_with_live(const std::vector<TimelineRecord>& live,
                                                          std::vector<TimelineRecord> recent);

/// Makes a process of the records, with only the names that they use.
[[nodiscard]] Process make_process(ProcessInfo info, std::vector<TimelineRecord> records,
                                   const Names& names);

}  // namespace weir::timeline
