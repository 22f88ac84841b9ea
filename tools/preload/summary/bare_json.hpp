#pragma once

// Just enough of JSON for a library that may need no other and may be in any program: nothing here
// asks for the program's locale, which may write numbers with a comma.
// Programs use tools/program/json_text.hpp instead.

#include <cstdint>
#include <string>
#include <string_view>

namespace weir::preload {

/// Quotes `text`. Bytes that are not UTF-8, as in a path, become U+FFFD.
[[nodiscard]] std::string json_string(std::string_view text);
/// A share in [0, 1] to six digits.
[[nodiscard]] std::string json_share(double share);

/// Builds one object, member by member. Names are not escaped.
class JsonObject {
 public:
  /// `value` is JSON already.
  void add(std::string_view name, std::string_view value);
  void add(std::string_view name, std::uint64_t value);
  [[nodiscard]] std::string text() const { return "{" + members_ + "}"; }

 private:
  std::string members_;
};

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
