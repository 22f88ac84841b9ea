#pragma once

// Texts of strangers, for viewers.

#include <string>
#include <string_view>

namespace weir::timeline {

/// `text` for people: valid UTF-8, where each byte that is none becomes U+FFFD, without control
/// characters, which become spaces, and cut after 4096 bytes.
[[nodiscard]] std::string shown_text(std::string_view text);

}  // namespace weir::timeline
