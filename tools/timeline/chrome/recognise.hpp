#pragma once

// Recognises Chrome trace JSON by a file's first bytes.

#include <string_view>

namespace weir::timeline::chrome {

/// Returns whether it is JSON of a trace, of any program.
[[nodiscard]] bool recognises(std::string_view front);
/// Returns whether it is a trace whose first events are ours.
[[nodiscard]] bool recognises_ours(std::string_view front);

}  // namespace weir::timeline::chrome
