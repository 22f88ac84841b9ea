#pragma once

// The output file for summaries.

#include <memory>
#include <string>
#include <vector>

#include "tools/program/output_file.hpp"
#include "tools/weir/run/summary_file.hpp"

namespace weir::cli {

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
