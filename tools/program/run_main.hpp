#pragma once

// The common `main` of every program.

#include <exception>
#include <functional>

namespace weir {

/// Holds the standard streams, runs `body` and returns its exit code. Reports exceptions of `body`.
[[nodiscard]] int run_main(const char* program, const std::function<int()>& body);

/// Prints `PROGRAM: what happened` on standard error and returns the exit code. Escapes control
/// characters, since the message of a UsageError quotes the user.
[[nodiscard]] int report_error(const char* program, const std::exception& error);

}  // namespace weir
