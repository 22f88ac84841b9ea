#pragma once

// Just enough of JSON for a library that may need no other and may be in any program: nothing here
// asks for the program's locale, which may write numbers with a comma.
// Programs use tools/program/json_text.hpp instead.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weir::preload {

/// Quotes `text`. Bytes that are not UTF-8, as in a path, become U+FFFD.
[[nodiscard]] std::string json_string(std::string_view text);
/// A share in [0, 1] to six digits.
[[nodiscard]] std::string json_share(double share);

/// The name is not escaped.
struct JsonMember {
  /// `value` is JSON already.
  JsonMember(std::string_view name, std::string_view value)
      : text("\"" + std::string(name) + "\":" + std::string(value)) {}
  JsonMember(std::string_view name, std::uint64_t value)
      : JsonMember(name, std::string_view(std::to_string(value))) {}
  std::string text;
};
/// Returns `{a,b}`.
[[nodiscard]] std::string json_object(const std::vector<JsonMember>& members);

/// Returns `[a,b]` of the elements converted by `convert`.
template <typename Range, typename Convert>
[[nodiscard]] std::string json_array(const Range& range, const Convert& convert) {
  std::string text = "[";
  for (const auto& element : range) {
    if (text.size() > 1) text += ",";
    text += convert(element);
  }
  return text + "]";
}

}  // namespace weir::preload
