#pragma once

// The report of a timeline as text, and the same figures for a program.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "tools/timeline/model/timeline.hpp"

namespace weir::timeline {

struct ReportOptions {
  std::size_t most_rows = 20;  ///< of each table; what is left out is said
};
/// Tables in plain text: a line with the process and the summary, or of several processes one of
/// all of them first; the holders at the peak and at each out-of-memory, stalls,
/// idle by cause, barriers, tasks. Every line has its end. Names are as the program gave them, but
/// control characters and bytes that are no UTF-8 become `?`.
[[nodiscard]] std::string report_text(const Timeline& timeline, const ReportOptions& options = {});
/// The same figures. Times are nanoseconds, shares are from 0 to 1.
[[nodiscard]] nlohmann::ordered_json report_json(const Timeline& timeline,
                                                 const ReportOptions& options = {});
/// `text` as it may be shown: valid UTF-8 without control characters.
[[nodiscard]] std::string printable(std::string_view text);

}  // namespace weir::timeline
