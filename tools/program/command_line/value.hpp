#pragma once

// What kind of value a flag takes. Help, manual pages and completions show it.

#include <string>
#include <string_view>
#include <vector>

#include "allocator/base/names.hpp"

namespace weir {

/// The values of a flag, as alternatives with `|` between them: `auto|N|TIME|off`. A word in
/// capitals is a kind of value; another word is itself a value.
class Value {
 public:
  /// No value.
  Value() = default;
  /// Throws std::logic_error if `text` has a word in capitals that is not known here. Completions
  /// offer the words that are values, and `more`.
  explicit Value(std::string text, std::vector<std::string> more = {});
  /// One of a closed set of names.
  [[nodiscard]] static Value one_of(const std::vector<std::string>& names);

  [[nodiscard]] bool empty() const noexcept { return text_.empty(); }
  /// The alternatives, for people.
  [[nodiscard]] const std::string& text() const noexcept { return text_; }
  /// What a completion offers.
  [[nodiscard]] const std::vector<std::string>& names() const noexcept { return names_; }
  [[nodiscard]] bool is_file() const noexcept { return file_; }
  [[nodiscard]] bool is_folder() const noexcept { return folder_; }
  /// The kinds of value among the alternatives, such as `TIME`.
  [[nodiscard]] const std::vector<std::string>& kinds() const noexcept { return kinds_; }

 private:
  std::string text_;
  std::vector<std::string> names_;
  std::vector<std::string> kinds_;
  bool file_ = false;
  bool folder_ = false;
};

/// Explains a kind of value: of `TIME` that it is a time such as 20ms. Empty where the word says
/// enough.
[[nodiscard]] std::string_view explain_kind(std::string_view kind) noexcept;

/// Returns what to_string calls the values of an enumeration, from the first to `last`.
template <typename Enum>
[[nodiscard]] std::vector<std::string> names_to(Enum last) {
  std::vector<std::string> names;
  for (int each = 0; each <= static_cast<int>(last); ++each) {
    names.emplace_back(to_string(static_cast<Enum>(each)));
  }
  return names;
}

}  // namespace weir
