#pragma once

// The file that `weir run` writes summaries to.

#include <memory>
#include <string>
#include <vector>

#include "tools/program/output_file.hpp"
#include "tools/weir/run/summary_file.hpp"

namespace weir::cli {

/// `text` with each `%p` as the process's number.
[[nodiscard]] std::string with_process(std::string text, std::uint64_t process);

class SummaryOutput {
 public:
  /// Nothing is written where `path` is empty. UsageError, naming `option`, where it cannot be
  /// written: now, and not when the program has run for a week.
  SummaryOutput(std::string option, std::string path);

  /// One file, or one for each process where the path has a `%p`. UsageError.
  void commit(const std::vector<SummaryFile>& summaries);

 private:
  const std::string option_;
  const std::string path_;
  std::unique_ptr<OutputFile> one_;  ///< null where there is none, or one for each process
};

}  // namespace weir::cli
