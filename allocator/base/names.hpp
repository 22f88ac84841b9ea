#pragma once

/// @file
/// The names of an enumeration's values, in a table: `constexpr auto kModes = name_table("a", "b")`
/// names the values 0 and 1.

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "allocator/base/setting.hpp"

namespace weir {

/// The names of the values from zero on.
template <std::size_t Count>
using Names = std::array<std::string_view, Count>;

/// Makes a table.
template <typename... Texts>
[[nodiscard]] constexpr Names<sizeof...(Texts)> name_table(const Texts&... texts) noexcept {
  return {std::string_view(texts)...};
}

/// Returns the name of `value`, which must be in the table.
template <typename Enum, std::size_t Count>
[[nodiscard]] constexpr std::string_view name_in(const Names<Count>& table, Enum value) noexcept {
  return table[static_cast<std::size_t>(value)];
}

/// Returns the value of that name; nothing if there is none.
template <typename Enum, std::size_t Count>
[[nodiscard]] constexpr std::optional<Enum> value_in(const Names<Count>& table,
                                                     std::string_view text) noexcept {
  for (std::size_t i = 0; i < Count; ++i) {
    if (table[i] == text) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

/// Returns the value of that name. Otherwise throws UsageError, with `source`, the text and the
/// names that are allowed.
template <typename Enum, std::size_t Count>
[[nodiscard]] Enum parse_name(const Names<Count>& table, std::string_view source,
                              std::string_view text) {
  if (const auto value = value_in<Enum>(table, text)) return *value;
  std::string all;
  for (std::size_t i = 0; i < Count; ++i) {
    all.append(i == 0 ? "" : i + 1 == Count ? " or " : ", ").append(table[i]);
  }
  refuse(source, text, all);
}

}  // namespace weir
