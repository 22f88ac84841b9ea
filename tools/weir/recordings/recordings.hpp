#pragma once

// Makes the pages of the out-of-memories that a program and its processes recorded.

#include <filesystem>
#include <string>
#include <string_view>

namespace weir::cli {

using FileTime = std::filesystem::file_time_type;

/// Returns the time of a file that is written now. The clock of files may be some milliseconds
/// behind that of the system.
[[nodiscard]] FileTime file_time_now();

/// Whether WEIR_TIMELINE=`pattern` names such a file in some process: a number for each `%p` and
/// `%r`, or another number before the suffix where several processes share a name. Without folders.
/// Pure.
[[nodiscard]] bool is_recording_of(std::string_view pattern, std::string_view name);

/// Makes the page of each out-of-memory that was written at `since` or later beside a recording of
/// WEIR_TIMELINE=`pattern`. Logs where it is, or why it cannot be made. Placeholders in the name of
/// the folder are not replaced.
void make_failure_pages(const std::string& pattern, FileTime since);

}  // namespace weir::cli
