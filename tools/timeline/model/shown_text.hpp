#pragma once

// Makes untrusted text safe to display.

#include <string>
#include <string_view>

namespace weir::timeline {

/// Returns `text` as valid UTF-8: each invalid byte becomes U+FFFD, control characters become
/// spaces, and the text is cut after 4096 bytes.
[[nodiscard]] std::string shown_text(std::string_view text);

}  // namespace weir::timeline
