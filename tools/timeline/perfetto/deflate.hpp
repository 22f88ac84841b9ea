#pragma once

#include <string>
#include <string_view>

namespace weir::timeline::perfetto {

/// Appends complete packets as one packet that contains them deflated, in a quarter of the bytes.
/// Appends them unchanged if zlib has no memory.
void append_deflated(std::string_view packets, std::string& out);

}  // namespace weir::timeline::perfetto
