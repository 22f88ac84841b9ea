#include "tools/weir/run/script.hpp"

#include <algorithm>

namespace weir::cli {
namespace {

constexpr std::string_view kBlank = " \t";

/// Removes the first word of `text` and returns it.
std::string_view take_word(std::string_view& text) {
  const std::size_t begin = std::min(text.find_first_not_of(kBlank), text.size());
  const std::size_t end = std::min(text.find_first_of(kBlank, begin), text.size());
  const std::string_view word = text.substr(begin, end - begin);
  text.remove_prefix(end);
  return word;
}

/// Returns what `env` runs with `arguments`. Empty if that needs more than skipping variables and
/// the option that splits a line into words.
std::string_view run_by_env(std::string_view arguments) {
  for (;;) {
    const std::string_view word = take_word(arguments);
    if (word == "-S" || word.find('=') != std::string_view::npos) continue;
    return word.starts_with('-') ? std::string_view{} : word;
  }
}

}  // namespace

std::optional<Interpreter> interpreter_of(std::string_view front) {
  if (!front.starts_with("#!")) return std::nullopt;
  std::string_view line = front.substr(2, front.find('\n') - 2);
  const std::string_view path = take_word(line);
  if (path.substr(path.rfind('/') + 1) == "env") {
    if (const std::string_view name = run_by_env(line); !name.empty()) {
      return Interpreter{std::string(name), true};
    }
  }
  return Interpreter{std::string(path), false};
}

bool is_shell_script(std::string_view front) {
  if (front.starts_with("#!") || front.starts_with("\177ELF")) return false;
  return front.substr(0, front.find('\n')).find('\0') == std::string_view::npos;
}

}  // namespace weir::cli
