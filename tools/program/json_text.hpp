#pragma once

// JSON output of programs. libweir.so has its own writers, which need no library:
// tools/preload/report/bare_json.hpp.

#include <nlohmann/json.hpp>
#include <string>

namespace weir {

/// Returns indented JSON that ends with a newline. Replaces bytes that are not UTF-8, such as in a
/// path, by U+FFFD: an exception here would lose the figures.
template <typename Json>
[[nodiscard]] std::string json_text(const Json& figures) {
  return figures.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace weir
