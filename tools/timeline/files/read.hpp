#pragma once

// Reads a timeline file of any format.

#include <string>

#include "tools/timeline/model/read_limits.hpp"
#include "tools/timeline/model/timeline.hpp"

namespace weir::timeline {

/// Reads a timeline file and detects the format from its first bytes, not from its name. Throws
/// UsageError of one line if it is none: a folder, an empty file, standard input (`-`), an
/// allocation log.
[[nodiscard]] Timeline read_timeline(const std::string& path);
[[nodiscard]] Timeline read_timeline(const std::string& path, const ReadLimits& limits);

}  // namespace weir::timeline
