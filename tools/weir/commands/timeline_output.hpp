#pragma once

// The output file of a timeline.

#include <string>

#include "tools/program/output_file.hpp"
#include "tools/timeline/files/formats.hpp"
#include "tools/timeline/model/timeline.hpp"

namespace weir::cli {

/// Like OutputFile, written entirely or not at all.
class TimelineOutput {
 public:
  /// Throws UsageError with `option` if the name or the place is not allowed.
  TimelineOutput(const std::string& option, const std::string& path);

  /// Needs no memory of the file's size. If it cannot be written, throws UsageError and keeps the
  /// old file.
  void commit(const timeline::Timeline& timeline);

 private:
  const timeline::NamedFormat format_;
  OutputFile file_;
};

}  // namespace weir::cli
