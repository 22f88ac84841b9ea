#pragma once

// The `main` of every program: what it does first, and how it reports what ended it.

#include <exception>
#include <functional>

namespace weir {

/// Holds the standard streams, runs `body` and returns its exit code. Reports what `body` throws.
[[nodiscard]] int run_main(const char* program, const std::function<int()>& body);

/// Prints `PROGRAM: what happened` on standard error and returns the exit code for it. The message
/// of a UsageError quotes the user, so its control characters are escaped.
[[nodiscard]] int report_error(const char* program, const std::exception& error);

}  // namespace weir
