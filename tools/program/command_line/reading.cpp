#include "tools/program/command_line/reading.hpp"

#include <algorithm>

namespace weir {
namespace {

/// Returns how many arguments a command takes.
std::size_t most_arguments(const CommandText& command) {
  std::size_t most = 0;
  for (const FlagText& flag : command.flags) {
    if (!flag.is_argument()) continue;
    if (flag.several) return SIZE_MAX;
    ++most;
  }
  return most;
}

const CommandText* find_command(const CommandText& command, const std::string& word) {
  const auto found = std::ranges::find(command.commands, word, &CommandText::last_name);
  return found == command.commands.end() ? nullptr : &*found;
}

/// Splits `--name=value`, and `-nvalue`.
GivenFlag split(const std::string& word) {
  GivenFlag given{.flag = nullptr, .typed = word, .value = {}};
  const bool is_long = word.starts_with("--");
  const std::size_t end = is_long ? std::min(word.find('='), word.size()) : 2;
  if (end >= word.size()) return given;
  given.typed = word.substr(0, end);
  given.value = word.substr(is_long ? end + 1 : end);
  given.attached = true;
  return given;
}

}  // namespace

const FlagText* find_flag(const CommandText& command, std::string_view name) {
  for (const FlagText& flag : command.flags) {
    if (!flag.is_argument() && std::ranges::count(flag.names, name) != 0) return &flag;
  }
  return nullptr;
}

Reading read_words(const CommandText& program, std::span<const std::string> words) {
  Reading reading;
  reading.command = &program;
  bool only_arguments = false;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (!only_arguments && word == "--") {
      only_arguments = true;
      if (!reading.command->program) continue;
      reading.program.assign(words.begin() + static_cast<std::ptrdiff_t>(i) + 1, words.end());
      break;
    } else if (!only_arguments && word.size() > 1 && word.starts_with('-')) {
      GivenFlag given = split(word);
      given.flag = find_flag(*reading.command, given.typed);
      if (given.flag == nullptr) {
        if (!reading.unknown_flag) reading.unknown_flag = {given.typed, reading.command, word};
        continue;
      }
      const bool takes_next = !given.flag->value.empty() && !given.attached;
      if (takes_next && i + 1 < words.size()) given.value = words[++i];
      reading.flags.push_back(std::move(given));
    } else if (const CommandText* const named = find_command(*reading.command, word);
               named != nullptr && !only_arguments) {
      reading.command = named;
    } else if (reading.arguments.size() < most_arguments(*reading.command)) {
      reading.arguments.push_back(word);
    } else if (!reading.unexpected) {
      reading.unexpected = {word, reading.command, word};
    }
  }
  return reading;
}

}  // namespace weir
