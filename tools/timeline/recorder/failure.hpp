#pragma once

// A timeline of the last seconds, complete in itself.

#include <vector>

#include "tools/timeline/model/timeline.hpp"

namespace weir::timeline {

/// The records of a window that ends now. `live` is what TimelineSource::record_live says now;
/// `recent` is what happened in the window. What was live when the window began is worked out from
/// both and comes first, as if the recording had begun then. A block that was freed in the window
/// and handed out before it has no name. Both are by `begin`, and so is what is returned.
[[nodiscard]] std::vector<TimelineRecord> begin_with_live(const std::vector<TimelineRecord>& live,
                                                          std::vector<TimelineRecord> recent);

/// A process of the records, with the names that they use and no others.
[[nodiscard]] Process make_process(ProcessInfo info, std::vector<TimelineRecord> records,
                                   const Names& names);

}  // namespace weir::timeline
