#pragma once

// The variables that Weir reads, and warnings of misspelt ones.

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weir {

/// Returns the variables of docs/environment.md. Each program reads some.
[[nodiscard]] std::span<const std::string_view> known_variables() noexcept;

/// Returns a warning, with the nearest known name, for each line `NAME=value` whose name begins
/// with `WEIR_` and is unknown.
[[nodiscard]] std::vector<std::string> unknown_variables(const char* const* lines);

/// Logs these warnings. Call it once in a process, after its log level is set.
void warn_of_unknown_variables(const char* const* environment);

}  // namespace weir
