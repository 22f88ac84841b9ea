#pragma once

// Standard output for tables and figures. Keeps other files from getting the numbers of standard
// streams.

#include <string>

namespace weir {

/// Call first in `main`. If a program starts with a closed standard stream, the next file that it
/// opens gets that number, and tables would go into the file. Makes each closed stream one that
/// cannot be written to and that child programs do not inherit.
void hold_standard_streams() noexcept;

/// Throws Error if standard output is closed. Commands that print call it before they compute.
void require_standard_output();

/// Makes the process, even after exit(), end with 1 if standard output could not be written. For
/// programs with libraries that print by themselves.
void fail_unprinted_at_exit();

/// Writes to standard output now, before anything else can fail. Returns zero or the error number.
[[nodiscard]] int print(const std::string& text);
/// Throws Error if `print` returned an error. Call last, so that a failed print does not also lose
/// the figures of an output file.
void require_printed(int error);

}  // namespace weir
