#pragma once

// Reads the summary files of processes.

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/preload/summary/summary.hpp"

namespace weir::cli {

struct SummaryFile {
  preload::Summary summary;
  std::string json;  ///< as written
};

/// Parses what preload::to_json wrote. Returns nothing if it is something else or cut off.
[[nodiscard]] std::optional<preload::Summary> parse_summary(std::string_view json);

struct Collected {
  std::vector<SummaryFile> summaries;   ///< `first` before the others, which are by number
  std::vector<std::string> unreadable;  ///< names of files without a complete summary
};
/// Reads all `*.json` in the folder.
[[nodiscard]] Collected collect_summaries(const std::string& folder, pid_t first);

/// Returns one summary unchanged; several, or none, in an array.
[[nodiscard]] std::string join_summaries(const std::vector<SummaryFile>& summaries);

/// The flag that set a variable of the program, by the variable's name.
using FlagSources = std::map<std::string, std::string>;

/// Returns one summary or an array of them indented, with settings that flags set named by those.
[[nodiscard]] std::string indented(std::string_view json, const FlagSources& flags);

}  // namespace weir::cli
