#pragma once

// SIGINT and SIGTERM as a stop token: the first asks the program to end with its results so far,
// the second ends it at once.

#include <stop_token>

namespace weir {

/// Call once. A signal that is ignored now stays ignored. Throws Error if no thread can be started.
[[nodiscard]] std::stop_token stop_on_interrupt();

}  // namespace weir
