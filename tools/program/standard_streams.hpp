#pragma once

// Standard output for tables and figures, and safe numbers of the standard streams.

#include <cstddef>
#include <optional>
#include <string>

namespace weir {

/// Call first in `main`. If a standard stream is closed, the next opened file gets its number, and
/// tables would go into the file. Replaces closed streams by ones that cannot be written to and
/// that child programs do not inherit.
void hold_standard_streams() noexcept;

/// Throws Error if standard output is closed. Commands that print call it before they compute.
void require_standard_output();

/// Returns the columns of the terminal on standard output, or those that COLUMNS names; nothing if
/// neither is known.
[[nodiscard]] std::optional<std::size_t> terminal_columns();

/// Makes the process, even after exit(), end with 1 if standard output could not be written. For
/// libraries that print by themselves.
void fail_unprinted_at_exit();

/// Writes to standard output now, before anything else fails. Returns zero or the error number.
[[nodiscard]] int print(const std::string& text);
/// Throws Error if `print` returned an error. Call last, so that a failed print does not lose the
/// figures in the output file.
void require_printed(int error);

}  // namespace weir
