#include "tools/program/command_line/command_text.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <stdexcept>

namespace weir {
namespace {

struct Kind {
  std::string_view name;
  std::string_view means;
};
constexpr std::array kKinds{
    Kind{"BYTES", "a size such as 6GiB or 512MiB"},
    Kind{"DIR", ""},
    Kind{"DURATION", "a time such as 30s, 5min or 2h"},
    Kind{"FILE", ""},
    Kind{"N", ""},
    Kind{"NAME", ""},
    Kind{"NUMBER", ""},
    Kind{"PERCENT", "a share such as 80%"},
    Kind{"PID", ""},
    Kind{"POOL", ""},
    Kind{"SECONDS", ""},
    Kind{"TIME", "a time such as 20ms or 10s"},
};

bool is_capital(char each) { return each >= 'A' && each <= 'Z'; }
bool is_small(char each) { return each >= 'a' && each <= 'z'; }
bool is_part_of_name(char each) {
  return is_small(each) || (each >= '0' && each <= '9') || each == '_' || each == '-';
}

}  // namespace

Value::Value(std::string text, std::vector<std::string> more) : text_(std::move(text)) {
  for (std::size_t begin = 0; begin <= text_.size();) {
    const std::size_t end = std::min(text_.find('|', begin), text_.size());
    const std::string word = text_.substr(begin, end - begin);
    begin = end + 1;
    if (word.empty())
      throw std::logic_error("an alternative of the value '" + text_ + "' is empty");
    if (std::ranges::all_of(word, is_part_of_name)) names_.push_back(word);
    if (!std::ranges::all_of(word, is_capital)) continue;
    if (std::ranges::find(kKinds, word, &Kind::name) == kKinds.end()) {
      throw std::logic_error(word + " is not a kind of value");
    }
    kinds_.push_back(word);
    file_ |= word == "FILE";
    folder_ |= word == "DIR";
  }
  names_.insert(names_.end(), more.begin(), more.end());
}

Value Value::one_of(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : "|") + name;
  return Value(text);
}

std::string_view explain_kind(std::string_view kind) noexcept {
  const auto* const found = std::ranges::find(kKinds, kind, &Kind::name);
  return found == kKinds.end() ? std::string_view() : found->means;
}

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
