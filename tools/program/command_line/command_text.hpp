#pragma once

// A command line in words: its flags, arguments and subcommands. Help, manual pages, completions
// and refusals are made of it.

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

/// A flag, or an argument.
struct FlagText {
  std::vector<std::string> names{};  ///< `-o` and `--output`; of an argument `TRACE`
  Value value{};                     ///< empty: it takes none
  std::string help{};                ///< what it does
  std::string default_value{};       ///< empty: none, or `help` says it
  std::string variable{};            ///< the environment variable that it overrides; may be empty
  std::vector<std::string> excludes{};  ///< the flags that it may not stand beside
  bool required = false;
  bool several = false;  ///< an argument that takes several values

  [[nodiscard]] bool is_argument() const { return !names.front().starts_with('-'); }
  /// Its longest name.
  [[nodiscard]] const std::string& name() const { return names.back(); }
};

struct ExitCode {
  std::string code;  ///< a number, or what it is: `the program's`
  std::string meaning;
};

struct CommandText {
  std::string name{};     ///< as people type it: `weir timeline record`
  std::string about{};    ///< one sentence, without the full stop
  std::string footer{};   ///< more sentences; may be empty
  std::string page{};     ///< the page about it, such as `docs/replay.md`; in help, what to read
  std::string version{};  ///< of a program; else empty
  bool program = false;   ///< another program's command line follows after `--`
  bool choose = false;    ///< one of the subcommands must follow
  std::vector<ExitCode> exit_codes{};
  std::vector<FlagText> flags{};  ///< arguments among them
  std::vector<CommandText> commands{};

  /// The last word of its name.
  [[nodiscard]] std::string_view last_name() const;
};

/// What is typed after `--` by users of a command that takes a program.
inline constexpr std::string_view kProgramWords = "-- PROGRAM [ARGUMENTS]";

/// Returns `text` as a sentence: a capital first, a full stop last.
[[nodiscard]] std::string sentence(std::string text);
/// Returns what is typed: `weir replay [FLAGS] TRACE...`.
[[nodiscard]] std::string usage(const CommandText& command);
/// Returns the flag's help with its default and its variable.
[[nodiscard]] std::string full_help(const FlagText& flag);
/// Joins names as `run, compare or predict`.
[[nodiscard]] std::string join_or(const std::vector<std::string>& names);
/// Returns what the kinds of value of the command's flags are: `TIME is a time such as 20ms.`
[[nodiscard]] std::string explain_values(const CommandText& command);

}  // namespace weir
