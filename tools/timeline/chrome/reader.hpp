#pragma once

// Reads Chrome trace JSON: our own files without loss, and of other programs' what there is of
// memory and devices.

#include <string>

#include "tools/timeline/model/read_limits.hpp"
#include "tools/timeline/model/timeline.hpp"

namespace weir::timeline {

/// The timeline of a file, gzip's or not, whose events are an array or stand in one of the name
/// `traceEvents`. A file that is cut is what there is of it, and its processes are not complete. An
/// event that is not as it should be is left out, and a kNote record counts those. UsageError of
/// one line, naming the file, where it is no such file or beyond `limits`.
[[nodiscard]] Timeline read_chrome(const std::string& path, const ReadLimits& limits = {});

}  // namespace weir::timeline
