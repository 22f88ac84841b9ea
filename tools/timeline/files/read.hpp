#pragma once

// Reads a timeline of any format.

#include <string>

#include "tools/timeline/model/read_limits.hpp"
#include "tools/timeline/model/timeline.hpp"

namespace weir::timeline {

/// The timeline of a file. Its first bytes say which format it has, not its name. UsageError of one
/// line where it is none: a folder, an empty file, standard input (`-`), an allocation log.
[[nodiscard]] Timeline read_timeline(const std::string& path);
[[nodiscard]] Timeline read_timeline(const std::string& path, const ReadLimits& limits);

}  // namespace weir::timeline
