#pragma once

// Standard output, for tables and figures; and the numbers of the standard streams, which no file
// of ours may get.

#include <string>

namespace weir {

/// First of all in `main`. A program may be started with a standard stream closed, and the next
/// file that it opens would get that number: tables would go into it. What is closed becomes a
/// stream that cannot be written to, and that programs which are started do not get.
void hold_standard_streams() noexcept;

/// Throws Error where standard output is closed. For commands that print, before they compute.
void require_standard_output();

/// At the end of the process, also by exit(): ends it with 1 where standard output could not be
/// written. For programs with libraries that print by themselves.
void fail_unprinted_at_exit();

/// To standard output now, before anything else can fail; zero, or what went wrong.
[[nodiscard]] int print(const std::string& text);
/// Last of all, so that figures that could not be printed are not lost to their file too. Throws
/// Error when `print` returned an error.
void require_printed(int error);

}  // namespace weir
