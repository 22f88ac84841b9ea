#pragma once

// Settings in force, as programs print them and write them into their JSON.

#include <span>
#include <string>
#include <utility>

#include "allocator/base/setting.hpp"

namespace weir {

/// One setting: `budget`, `80%`, `WEIR_BUDGET`.
struct SettingLine {
  std::string name;    ///< of the flag, without its dashes
  std::string value;   ///< as its flag or variable reads it; empty if it is not set
  std::string source;  ///< a flag, a variable, `default`, or what it follows from
  std::string note{};  ///< for people; mostly empty

  /// Returns the value for people: `none` if it is not set.
  [[nodiscard]] std::string shown() const { return value.empty() ? "none" : value; }
};

/// Returns the line of `setting`, whose value is `value` in words.
template <typename T>
[[nodiscard]] SettingLine setting_line(std::string name, std::string value,
                                       const Setting<T>& setting) {
  return {std::move(name), std::move(value), setting.source};
}

/// Returns `settings: device=cpu (default), budget=96MiB (--budget), …`.
[[nodiscard]] inline std::string settings_text(std::span<const SettingLine> lines) {
  std::string text;
  for (const SettingLine& line : lines) {
    text.append(text.empty() ? "settings: " : ", ").append(line.name).append("=");
    text.append(line.shown()).append(" (").append(line.source);
    if (!line.note.empty()) text.append(", ").append(line.note);
    text += ")";
  }
  return text;
}

}  // namespace weir
