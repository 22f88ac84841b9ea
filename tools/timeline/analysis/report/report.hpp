#pragma once

// Reports a timeline as text, and the same figures as JSON.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "tools/timeline/model/timeline.hpp"

namespace weir::timeline {

struct ReportOptions {
  std::size_t most_rows = 20;  ///< of each table; omitted rows are mentioned
  bool wide = false;           ///< tables with all columns; otherwise at most 100 columns wide
};
/// Returns plain-text tables: a line with the process and the summary (for several processes, a
/// line for all of them first); holders at the peak and at each out-of-memory, stalls, idle by
/// cause, barriers, tasks. Every line ends with a newline. Names are those of the program, with `?`
/// for control characters and invalid UTF-8.
[[nodiscard]] std::string report_text(const Timeline& timeline, const ReportOptions& options = {});
/// Returns the same figures. Times are nanoseconds, shares are from 0 to 1.
[[nodiscard]] nlohmann::ordered_json report_json(const Timeline& timeline,
                                                 const ReportOptions& options = {});
/// Returns `text` as valid UTF-8 without control characters.
[[nodiscard]] std::string printable(std::string_view text);

}  // namespace weir::timeline
