#pragma once

// Reads the summary files of processes, and writes them together.

#include <sys/types.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/preload/summary/summary.hpp"
#include "tools/program/output_file.hpp"

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

/// Replaces each `%p` in `text` by the process's number.
[[nodiscard]] std::string with_process(std::string text, std::uint64_t process);

class SummaryOutput {
 public:
  /// Writes nothing if `path` is empty. Throws UsageError with `option` if it cannot be written:
  /// now, not after the program has run for a week.
  SummaryOutput(std::string option, std::string path);

  /// Writes one file, or one for each process if the path has a `%p`. Throws UsageError.
  void commit(const std::vector<SummaryFile>& summaries, const FlagSources& flags);

 private:
  const std::string option_;
  const std::string path_;
  std::unique_ptr<OutputFile> one_;  ///< null if there is none, or one for each process
};

}  // namespace weir::cli
