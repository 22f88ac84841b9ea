#pragma once

// What a shared library exports and needs, as the toolchain's own tools tell it.

#include <set>
#include <string>

namespace weir::preload {

using Names = std::set<std::string>;

/// The functions that it exports, without their versions.
[[nodiscard]] Names exported_by(const std::string& library);
/// The libraries that have to be there when it is loaded.
[[nodiscard]] Names needed_by(const std::string& library);

}  // namespace weir::preload
