#pragma once

// SIGINT and SIGTERM as a stop token: the first asks the program to end with what it has, a second
// one ends it at once.

#include <stop_token>

namespace weir {

/// Call once. A signal that is ignored when this is called stays ignored. Error where no
/// thread can be started.
[[nodiscard]] std::stop_token stop_on_interrupt();

}  // namespace weir
