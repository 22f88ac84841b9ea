#pragma once

// The last seconds before memory ran out: a timeline of its own, in a small file beside the
// recording. `weir timeline report` makes its page.

#include <cstddef>
#include <string>
#include <vector>

#include "tools/timeline/model/timeline.hpp"

namespace weir::timeline {

/// Returns the records of a window that ends now, as if the recording had begun with the window.
/// `live` is the current state from TimelineSource::record_live; `recent` has the window's events.
/// The state at the window's begin is derived from both and comes first. A block that was allocated
/// before the window and freed in it has no name. Inputs and result are sorted by `begin`.
[[nodiscard]] std::vector<TimelineRecord> begin_with_live(const std::vector<TimelineRecord>& live,
                                                          std::vector<TimelineRecord> recent);

/// Makes a process of the records, with only the names that they use.
[[nodiscard]] Process make_process(ProcessInfo info, std::vector<TimelineRecord> records,
                                   const Names& names);

/// The most failures of a recording that get a file.
inline constexpr std::size_t kMostFailures = 5;
/// Returns the file of the recording's failure with this number, from 1 on: `run.oom.pftrace` and
/// `run.oom.2.pftrace` for run.json.
[[nodiscard]] std::string failure_file(const std::string& recording, std::size_t number);
/// Returns the name of the file's page: `run.oom.html`.
[[nodiscard]] std::string failure_page(const std::string& file);
/// Returns the command that makes it, for a shell.
[[nodiscard]] std::string failure_command(const std::string& file);
/// Returns the file's contents.
[[nodiscard]] std::string bytes_of_failure(const Timeline& timeline);

}  // namespace weir::timeline
