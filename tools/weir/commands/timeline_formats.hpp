#pragma once

// What `weir timeline` makes of a timeline, by format. Whoever adds a format touches this file's
// source alone.

#include <string>

#include "tools/timeline/model/timeline.hpp"

namespace weir::cli {

/// What the end of a file's name asks for.
struct TimelineFormat {
  timeline::Format format{};
  bool packed = false;  ///< .json.gz
};

/// UsageError naming `option` for a name that ends otherwise than .json, .json.gz, .pftrace or
/// .pickle.
[[nodiscard]] TimelineFormat timeline_format(const std::string& option, const std::string& path);
/// The same, for a recording under way: .pickle is refused, too.
[[nodiscard]] TimelineFormat recording_format(const std::string& option, const std::string& path);

/// Writes the file's bytes. UsageError where this program does not write the format.
void write_timeline_as(TimelineFormat format, const timeline::Timeline& timeline,
                       timeline::ByteSink& sink);

/// The page, the text and the JSON of `weir timeline report`. UsageError where this program does
/// not make it.
[[nodiscard]] std::string timeline_page(const timeline::Timeline& timeline);
[[nodiscard]] std::string timeline_text(const timeline::Timeline& timeline);
[[nodiscard]] std::string timeline_json(const timeline::Timeline& timeline);

}  // namespace weir::cli
