#pragma once

// Reads Chrome trace JSON: our own files without loss, and memory and device events of other
// programs' files.

#include <string>

#include "tools/timeline/model/read_limits.hpp"
#include "tools/timeline/model/timeline.hpp"

namespace weir::timeline {

/// Reads the timeline of a file, gzipped or not, whose events are an array or a member
/// `traceEvents`. Reads a truncated file up to its end; its processes are not complete. Skips
/// invalid events and counts them in a kNote record. Throws UsageError of one line, naming the
/// file, if it is another kind of file or exceeds `limits`.
[[nodiscard]] Timeline read_chrome(const std::string& path, const ReadLimits& limits = {});

}  // namespace weir::timeline
