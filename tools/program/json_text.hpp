#pragma once

// How figures are written to a file.

#include <nlohmann/json.hpp>
#include <string>

namespace weir {

/// Indented, with a newline at its end. A path need not be UTF-8, as JSON must be: what is not is
/// replaced by U+FFFD, since an exception here would lose the figures.
[[nodiscard]] inline std::string json_text(const nlohmann::json& figures) {
  return figures.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace weir
