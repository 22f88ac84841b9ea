#pragma once

/// @file
/// A value and its source, so that a program can print what is in force and why. Sources, in order:
/// a flag, our environment variable, another project's variable of the same meaning, the default.

#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "allocator/base/bytes.hpp"
#include "allocator/base/error.hpp"

namespace weir {

/// A value of type T and its source.
template <typename T>
struct Setting {
  T value{};                       ///< what is in force
  std::string source = "default";  ///< a flag, a variable, `program` or `default`

  Setting() = default;
  /// Set by code unless `from` says otherwise. Implicit, for assigning a plain value.
  Setting(T v, std::string from = "program") : value(std::move(v)), source(std::move(from)) {}
  /// A setting whose source is `default`.
  [[nodiscard]] static Setting by_default(T v) { return {std::move(v), "default"}; }
};

/// Returns a variable's value; null if not set. Tests pass their own.
using Environment = std::function<const char*(const char* name)>;
/// Reads this process's variables. Not while another thread changes them.
[[nodiscard]] Environment process_environment();

/// Throws UsageError: `name='value' is not allowed: want`. Every bad value is refused in this form.
[[noreturn]] void refuse(std::string_view name, std::string_view value, std::string_view want);

/// Sets `setting` from the first of `names` that is set and not empty. `parse(name, text)` returns
/// the value or throws UsageError.
template <typename T, typename Parse>
void read_setting(Setting<T>& setting, const Environment& environment,
                  std::initializer_list<const char*> names, const Parse& parse) {
  for (const char* name : names) {
    const char* text = environment(name);
    if (text == nullptr || *text == '\0') continue;
    setting = {parse(name, std::string_view{text}), name};
    return;
  }
}

/// Parses a number of bytes, plain or with a unit (`25MiB`). Throws UsageError for anything but a
/// number from 1 on.
[[nodiscard]] Bytes parse_some_bytes(std::string_view name, std::string_view text);

// Settings in force, as programs print them and write them into their JSON.

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
