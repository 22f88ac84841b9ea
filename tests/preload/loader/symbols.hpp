#pragma once

// The exports and needs of a shared library, from the toolchain's tools.

#include <set>
#include <string>

namespace weir::preload {

using Names = std::set<std::string>;

/// The functions that it exports, without their versions.
[[nodiscard]] Names exported_by(const std::string& library);
/// All functions and variables in it that have a name.
[[nodiscard]] Names defined_in(const std::string& library);
/// The libraries that it needs when it is loaded.
[[nodiscard]] Names needed_by(const std::string& library);

}  // namespace weir::preload
