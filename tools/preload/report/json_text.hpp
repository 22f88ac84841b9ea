#pragma once

// Just enough of JSON for a library that may need no other and may be in any program: nothing here
// asks for the program's locale, which may write numbers with a comma.

#include <cstdint>
#include <string>
#include <string_view>

namespace weir::preload {

/// `text` in quotes. What is not UTF-8 in it, as a path need not be, becomes U+FFFD.
[[nodiscard]] std::string json_string(std::string_view text);
/// A share in [0, 1] to six digits.
[[nodiscard]] std::string json_share(double share);

/// One object, member after member. Names are written as they are.
class JsonObject {
 public:
  /// `value` is JSON already.
  void add(std::string_view name, std::string_view value);
  void add(std::string_view name, std::uint64_t value);
  [[nodiscard]] std::string text() const { return "{" + members_ + "}"; }

 private:
  std::string members_;
};

/// `[a,b]` of what `convert` makes of each element.
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
