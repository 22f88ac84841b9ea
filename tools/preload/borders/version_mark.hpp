#pragma once

// What libweir.so says of itself in its file, so that its version can be read without loading it.

#include <string_view>

namespace weir::preload {

/// In front of the version, which a null character ends.
inline constexpr std::string_view kVersionMark = "the version of libweir.so is ";

}  // namespace weir::preload
