#include "tools/program/command_line/command_text.hpp"

#include <set>

namespace weir {

std::string_view CommandText::last_name() const {
  return std::string_view(name).substr(name.rfind(' ') + 1);
}

std::string sentence(std::string text) {
  if (text.empty()) return text;
  if (text.front() >= 'a' && text.front() <= 'z') {
    text.front() = static_cast<char>(text.front() - 'a' + 'A');
  }
  if (text.back() != '.') text += '.';
  return text;
}

std::string usage(const CommandText& command) {
  std::string arguments;
  std::string flags;
  bool several = false;
  for (const FlagText& flag : command.flags) {
    if (flag.is_argument()) {
      const std::string name = flag.name() + (flag.several ? "..." : "");
      arguments += flag.required ? " " + name : " [" + name + "]";
      several |= flag.several;
    } else if (flag.required) {
      flags += " " + flag.name() + " " + flag.value.text();
    }
  }
  flags += " [FLAGS]";
  std::string text = command.name;
  if (!command.commands.empty()) text += command.choose ? " COMMAND" : " [COMMAND]";
  text += several ? flags + arguments : arguments + flags;
  if (command.program) text.append(" ").append(kProgramWords);
  return text;
}

std::string full_help(const FlagText& flag) {
  std::string text = flag.help;
  if (!flag.default_value.empty()) text += " (default: " + flag.default_value + ")";
  if (!flag.variable.empty()) text += " (" + flag.variable + ")";
  return text;
}

std::string join_or(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i != 0) text += i + 1 == names.size() ? " or " : ", ";
    text += names[i];
  }
  return text;
}

std::string explain_values(const CommandText& command) {
  std::set<std::string> kinds;
  for (const FlagText& flag : command.flags) {
    if (!flag.is_argument()) kinds.insert(flag.value.kinds().begin(), flag.value.kinds().end());
  }
  std::string text;
  for (const std::string& kind : kinds) {
    const std::string_view means = explain_kind(kind);
    if (means.empty()) continue;
    text.append(text.empty() ? "" : ", ").append(kind).append(" is ").append(means);
  }
  return text.empty() ? text : text + ".";
}

}  // namespace weir
