#pragma once

#include <string>
#include <string_view>

namespace weir::timeline::perfetto {

/// Appends whole packets as one that holds them deflated: a quarter of the bytes. As they are where
/// zlib has no memory.
void append_deflated(std::string_view packets, std::string& out);

}  // namespace weir::timeline::perfetto
