#pragma once

// JSON output of programs. libweir.so has its own writers without a library:
// tools/preload/summary/bare_json.hpp.

#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "allocator/base/setting.hpp"

namespace weir {

/// Returns indented JSON with a final newline. Replaces bytes that are not UTF-8 by U+FFFD: an
/// exception here would lose the figures.
template <typename Json>
[[nodiscard]] std::string json_text(const Json& figures) {
  return figures.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

/// Returns `{NAME: {"value": TEXT, "source": TEXT}}`, as every JSON output has its settings.
template <typename Json = nlohmann::json>
[[nodiscard]] Json settings_json(std::span<const SettingLine> lines) {
  Json settings = Json::object();
  for (const SettingLine& line : lines) {
    settings[line.name] = {{"value", line.value}, {"source", line.source}};
  }
  return settings;
}

}  // namespace weir
