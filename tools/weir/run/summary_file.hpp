#pragma once

// Summaries that processes left in files.

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/preload/report/summary.hpp"

namespace weir::cli {

struct SummaryFile {
  preload::Summary summary;
  std::string json;  ///< as it was written
};

/// What preload::to_json wrote; nothing where it is something else or cut off.
[[nodiscard]] std::optional<preload::Summary> parse_summary(std::string_view json);

struct Collected {
  std::vector<SummaryFile> summaries;   ///< that of `first` before the others, those by number
  std::vector<std::string> unreadable;  ///< names of files that hold no whole summary
};
/// All `*.json` in the folder.
[[nodiscard]] Collected collect_summaries(const std::string& folder, pid_t first);

/// One summary as it is; several, or none, in an array.
[[nodiscard]] std::string join_summaries(const std::vector<SummaryFile>& summaries);

}  // namespace weir::cli
