#include "tools/program/command_line/help.hpp"

#include <algorithm>
#include <sstream>

namespace weir {
namespace {

constexpr std::size_t kColumn = 28;  ///< where the explanations begin

/// Returns a line of a list: a name, and its explanation in a column of its own.
std::string entry(const std::string& name, const std::string& text, std::size_t width) {
  std::string line = "  " + name;
  if (line.size() + 2 > kColumn) line += "\n" + std::string(kColumn, ' ');
  const std::size_t begin = line.rfind('\n') + 1;
  line.resize(std::max(line.size(), begin + kColumn), ' ');
  return line + wrap(text, width, kColumn, kColumn) + "\n";
}

/// Returns `-o, --output FILE`.
std::string heading_of(const FlagText& flag) {
  std::string text;
  for (const std::string& name : flag.names) text += (text.empty() ? "" : ", ") + name;
  if (flag.is_argument()) return text + (flag.several ? "..." : "");
  return flag.value.empty() ? text : text + " " + flag.value.text();
}

std::string list_of(const CommandText& command, bool arguments, std::size_t width) {
  std::string text;
  for (const FlagText& flag : command.flags) {
    if (flag.is_argument() != arguments) continue;
    text += entry(heading_of(flag), full_help(flag), width);
  }
  if (text.empty()) return text;
  return (arguments ? "\nArguments:\n" : "\nFlags:\n") + text;
}

std::string commands_of(const CommandText& command, std::size_t width) {
  if (command.commands.empty()) return "";
  std::string text = "\nCommands:\n";
  for (const CommandText& each : command.commands) {
    text += entry(std::string(each.last_name()), each.about, width);
  }
  return text;
}

/// Returns how much of a word stands in a line: a long list may be broken at a comma.
std::size_t first_part(const std::string& word, std::size_t room) {
  if (word.size() <= room) return word.size();
  const std::size_t comma = word.rfind(',', room - 1);
  return comma == std::string::npos ? word.size() : comma + 1;
}

std::string exit_codes_of(const CommandText& command) {
  std::string text;
  for (const ExitCode& each : command.exit_codes) {
    text += (text.empty() ? "Exit codes: " : "; ") + each.code + ": " + each.meaning;
  }
  return text.empty() ? text : text + ".";
}

}  // namespace

std::size_t help_width(std::optional<std::uint64_t> columns) {
  constexpr std::size_t kLeast = 50;
  constexpr std::size_t kUsual = 80;
  constexpr std::size_t kMost = 100;
  return columns && *columns != 0 ? std::clamp<std::size_t>(*columns, kLeast, kMost) : kUsual;
}

std::string wrap(const std::string& text, std::size_t width, std::size_t first,
                 std::size_t indent) {
  std::string wrapped;
  std::size_t column = first;
  const std::string new_line = "\n" + std::string(indent, ' ');
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (!wrapped.empty() && column + 1 + word.size() > width) {
      wrapped += new_line;
      column = indent;
    } else if (!wrapped.empty()) {
      wrapped += ' ';
      ++column;
    }
    for (std::size_t part; (part = first_part(word, width - indent)) < word.size();) {
      wrapped += word.substr(0, part) + new_line;
      word.erase(0, part);
      column = indent;
    }
    wrapped += word;
    column += word.size();
  }
  return wrapped;
}

std::string help_text(const CommandText& command, std::size_t width) {
  std::string text = wrap(sentence(command.about), width, 0, 0) + "\n\n";
  const std::string usage_line = "Usage: " + usage(command);
  text += wrap(usage_line, width, 0, 7) + "\n";
  text +=
      list_of(command, true, width) + commands_of(command, width) + list_of(command, false, width);
  const std::string more = command.commands.empty()
                               ? ""
                               : command.name + " COMMAND --help lists the flags of a command.";
  const std::string page = command.page.empty() ? "" : "More: " + command.page;
  for (const std::string& part :
       {more, explain_values(command), command.footer, exit_codes_of(command), page}) {
    if (!part.empty()) text += "\n" + wrap(part, width, 0, 0) + "\n";
  }
  return text;
}

}  // namespace weir
