#pragma once

/// @file
/// A value and its source, so that a program can print what is in force and why. Sources, in order:
/// a flag, our environment variable, another project's variable of the same meaning, the default.

#include <functional>
#include <initializer_list>
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

}  // namespace weir
