#pragma once

// The library to preload: where it is, and whether it can be preloaded.

#include <string>

#include "allocator/base/setting.hpp"

namespace weir::cli {

/// Where the library is looked for: by name (`--library`, WEIR_LIBRARY), or beside this program in
/// the build folder and where it is installed. An empty value where none is there; the source then
/// says in one line what was looked for.
[[nodiscard]] Setting<std::string> locate_library(const Setting<std::string>& named);

/// As locate_library, absolute and fit to be preloaded. UsageError of one line otherwise.
[[nodiscard]] std::string require_library(const Setting<std::string>& named);

/// WEIR_LIBRARY; empty when it is not set.
[[nodiscard]] Setting<std::string> named_library(const Environment& environment);

}  // namespace weir::cli
