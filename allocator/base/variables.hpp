#pragma once

/// @file
/// The variables that Weir reads, so that one with a mistake in its name is not passed over in
/// silence.

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weir {

/// All variables of Weir that docs/environment.md lists. Each program reads some of them.
[[nodiscard]] std::span<const std::string_view> known_variables() noexcept;

/// For each line `NAME=value` whose name begins with `WEIR_` and is not known: a warning, with the
/// nearest name that is.
[[nodiscard]] std::vector<std::string> unknown_variables(const char* const* lines);

/// Logs those of an environment. Once in a process, when its log level is set.
void warn_of_unknown_variables(const char* const* environment);

}  // namespace weir
