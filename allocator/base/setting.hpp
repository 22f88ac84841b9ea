#pragma once

/// @file
/// A setting is a value and where it came from, so that a program can print what is in force and
/// why. Values come, in this order, from a flag, our environment variable, another project's
/// variable for the same thing, or the default.

#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "allocator/base/error.hpp"

namespace weir {

/// A value of type T and its source.
template <typename T>
struct Setting {
  T value{};                       ///< what is in force
  std::string source = "default";  ///< a flag, a variable, `program` or `default`

  Setting() = default;
  /// Set by code, unless `from` says otherwise; so a plain value can be assigned.
  Setting(T v, std::string from = "program") : value(std::move(v)), source(std::move(from)) {}
  /// What holds when nothing is set.
  [[nodiscard]] static Setting by_default(T v) { return {std::move(v), "default"}; }
};

/// Looks a variable up; null when it is not set. Tests pass their own.
using Environment = std::function<const char*(const char* name)>;
/// The variables of this process. Not while another thread changes them.
[[nodiscard]] Environment process_environment();

/// `name='value' is not allowed: want`: the one form in which a bad value is refused.
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

}  // namespace weir
