#pragma once

// The output formats of `weir timeline`. A format that only `weir timeline` writes is added in this
// file's source; one that is also recorded or read, in tools/timeline/recorder and files as well.

#include <string>

#include "tools/timeline/model/timeline.hpp"

namespace weir::cli {

/// The format that a file name's suffix selects.
struct TimelineFormat {
  timeline::Format format{};
  bool packed = false;  ///< .json.gz
};

/// Throws UsageError with `option` unless the name ends in .json, .json.gz, .pftrace or .pickle.
[[nodiscard]] TimelineFormat timeline_format(const std::string& option, const std::string& path);
/// The same for a running recording, which also refuses .pickle.
[[nodiscard]] TimelineFormat recording_format(const std::string& option, const std::string& path);

/// Writes the file's bytes. Throws UsageError if this program does not write the format.
void write_timeline_as(TimelineFormat format, const timeline::Timeline& timeline,
                       timeline::ByteSink& sink);

/// Returns the page, the text and the JSON of `weir timeline report`. Throws UsageError if this
/// program cannot make it.
[[nodiscard]] std::string timeline_page(const timeline::Timeline& timeline);
[[nodiscard]] std::string timeline_text(const timeline::Timeline& timeline);
[[nodiscard]] std::string timeline_json(const timeline::Timeline& timeline);

}  // namespace weir::cli
