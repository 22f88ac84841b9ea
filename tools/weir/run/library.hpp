#pragma once

// Finds the library to preload and checks it.

#include <string>
#include <vector>

#include "allocator/base/setting.hpp"

namespace weir::cli {

/// Returns the library's path: the named one (`--library`, WEIR_LIBRARY), or the one beside this
/// program in the build folder or where installed. Empty if there is none; the source then says in
/// one line where it looked.
[[nodiscard]] Setting<std::string> locate_library(const Setting<std::string>& named);

/// Like locate_library, but absolute and checked for preloading. Throws UsageError of one line
/// otherwise.
[[nodiscard]] std::string require_library(const Setting<std::string>& named);

/// Returns the versions of PyTorch, the oldest first, for which plugs lie beside the library.
[[nodiscard]] std::vector<std::string> plugs_beside(const std::string& library);

/// WEIR_LIBRARY; empty if not set.
[[nodiscard]] Setting<std::string> named_library(const Environment& environment);

}  // namespace weir::cli
