#pragma once

// Recognises Perfetto traces by a file's first bytes.

#include <string_view>

namespace weir::timeline::perfetto {

/// Returns whether it begins like a trace, of any program.
[[nodiscard]] bool recognises(std::string_view front);
/// Returns whether it is a trace whose first packet is ours.
[[nodiscard]] bool recognises_ours(std::string_view front);

}  // namespace weir::timeline::perfetto
