#pragma once

// How programs write figures to a file. libweir.so has writers of its own, which need no library:
// tools/preload/report/bare_json.hpp.

#include <nlohmann/json.hpp>
#include <string>

namespace weir {

/// Indented, with a newline at its end. A path need not be UTF-8, as JSON must be: what is not is
/// replaced by U+FFFD, since an exception here would lose the figures.
template <typename Json>
[[nodiscard]] std::string json_text(const Json& figures) {
  return figures.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace weir
