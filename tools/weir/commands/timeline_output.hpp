#pragma once

// The file that a timeline is written to.

#include <string>

#include "tools/program/output_file.hpp"
#include "tools/timeline/model/timeline.hpp"
#include "tools/weir/commands/timeline_formats.hpp"

namespace weir::cli {

/// The same promises as OutputFile: written whole, or not at all.
class TimelineOutput {
 public:
  /// UsageError naming `option` where the name or the place is not allowed.
  TimelineOutput(const std::string& option, const std::string& path);

  /// Needs no memory of the file's size. UsageError where it cannot be written; the old file stays.
  void commit(const timeline::Timeline& timeline);

 private:
  const TimelineFormat format_;
  OutputFile file_;
};

}  // namespace weir::cli
