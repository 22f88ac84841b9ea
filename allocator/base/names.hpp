#pragma once

/// @file
/// The names of an enumeration's values. Beside an enumeration whose values count from zero stands
///
///     constexpr auto names_of(Mode /*of*/) noexcept { return name_table("slow", "fast"); }
///
/// and to_string and parse_name know it.

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "allocator/base/setting.hpp"

namespace weir {

/// Makes a table of names.
template <typename... Texts>
[[nodiscard]] constexpr std::array<std::string_view, sizeof...(Texts)> name_table(
    const Texts&... texts) noexcept {
  return {std::string_view(texts)...};
}

/// An enumeration beside which a names_of stands.
template <typename Enum>
concept Named = requires(Enum value) {
  names_of(value)[0];
};

/// Returns the name of `value`; `unknown` for a number that is no value.
template <Named Enum>
[[nodiscard]] constexpr std::string_view to_string(Enum value) noexcept {
  constexpr auto kNamesOfEnum = names_of(Enum{});
  const auto place = static_cast<std::size_t>(value);
  return place < kNamesOfEnum.size() ? kNamesOfEnum[place] : "unknown";
}

/// Returns the value of that name. Otherwise throws UsageError, with `source`, the text and the
/// names that are allowed.
template <Named Enum>
[[nodiscard]] Enum parse_name(std::string_view source, std::string_view text) {
  constexpr auto kNamesOfEnum = names_of(Enum{});
  std::string all;
  for (std::size_t i = 0; i < kNamesOfEnum.size(); ++i) {
    if (kNamesOfEnum[i] == text) return static_cast<Enum>(i);
    all.append(i == 0 ? "" : i + 1 == kNamesOfEnum.size() ? " or " : ", ").append(kNamesOfEnum[i]);
  }
  refuse(source, text, all);
}

}  // namespace weir
