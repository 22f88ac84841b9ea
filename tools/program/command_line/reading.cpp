#include "tools/program/command_line/reading.hpp"

#include <algorithm>
#include <set>

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

namespace {

/// Returns how many letters must be added, removed, replaced or swapped with the next.
std::size_t distance(std::string_view from, std::string_view to) {
  std::vector<std::vector<std::size_t>> cost(from.size() + 1,
                                             std::vector<std::size_t>(to.size() + 1));
  for (std::size_t i = 0; i <= from.size(); ++i) {
    for (std::size_t j = 0; j <= to.size(); ++j) {
      if (i == 0 || j == 0) {
        cost[i][j] = i + j;
        continue;
      }
      const bool same = from[i - 1] == to[j - 1];
      cost[i][j] =
          std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, cost[i - 1][j - 1] + (same ? 0U : 1U)});
      const bool swapped = i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1];
      if (swapped) cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
    }
  }
  return cost[from.size()][to.size()];
}

std::vector<std::string> flag_names(const CommandText& command) {
  std::vector<std::string> names;
  for (const FlagText& flag : command.flags) {
    if (!flag.is_argument()) names.push_back(flag.name());
  }
  return names;
}

std::vector<std::string> command_names(const CommandText& command) {
  std::vector<std::string> names;
  for (const CommandText& each : command.commands) names.emplace_back(each.last_name());
  return names;
}

/// Adds to `owners` each command from `command` on that has the flag.
void add_owners(const CommandText& command, const std::string& flag,
                std::vector<const CommandText*>& owners) {
  if (find_flag(command, flag) != nullptr) owners.push_back(&command);
  for (const CommandText& each : command.commands) add_owners(each, flag, owners);
}

/// Returns which flag was meant by a word with one dash, `-json` or `-json=x`; empty if none.
std::string with_two_dashes(const CommandText& command, const std::string& word) {
  const std::string name = "-" + word.substr(0, word.find('='));
  return !word.starts_with("--") && find_flag(command, name) != nullptr ? name : "";
}

/// Says of which command a flag is that stands on the wrong side of a command's name.
std::string elsewhere(const CommandText& program, const CommandText& named, const std::string& flag,
                      const CommandText& before) {
  // A command that a later word names is meant, whoever else has the flag.
  std::vector<const CommandText*> owners;
  if (find_flag(named, flag) != nullptr) {
    owners.push_back(&named);
  } else {
    add_owners(program, flag, owners);
  }
  if (owners.empty()) return see_help(before);
  if (owners.size() == 1) return ", but of " + owners[0]->name + see_help(*owners[0]);
  return ", but of some of its commands: write it after the command's name" + see_help(before);
}

std::string unknown_flag(const CommandText& program, const Reading& reading) {
  const StrayWord& stray = *reading.unknown_flag;
  const CommandText& command = *stray.command;
  const std::string whole = with_two_dashes(command, stray.whole);
  const std::string flag =
      whole.empty() ? stray.word : stray.whole.substr(0, stray.whole.find('='));
  const std::string text = flag + " is not a flag of " + command.name;
  const std::string near = whole.empty() ? nearest(flag, flag_names(command)) : whole;
  if (!near.empty()) return text + ": did you mean " + near + "?" + see_help(command);
  return text + elsewhere(program, *reading.command, flag, command);
}

std::string unexpected(const StrayWord& stray) {
  const CommandText& command = *stray.command;
  const std::string& word = stray.word;
  if (!command.commands.empty()) {
    const std::vector<std::string> names = command_names(command);
    const std::string near = nearest(word, names);
    return "'" + word +
           "' is not known: " + (near.empty() ? join_or(names) : "did you mean " + near + "?") +
           see_help(command);
  }
  if (command.program) {
    return "'" + word + "' was not expected: the program comes after --: " + usage(command) +
           see_help(command);
  }
  std::string names;
  for (const FlagText& flag : command.flags) {
    if (flag.is_argument()) names += " " + flag.name();
  }
  return "'" + word + "' was not expected: " + command.name +
         (names.empty() ? " takes no arguments" : " takes only" + names) + see_help(command);
}

/// Finds a flag where another flag's value is missing, and a value of a flag that takes none.
std::optional<std::string> wrong_value(const Reading& reading) {
  const std::string see = see_help(*reading.command);
  for (const GivenFlag& given : reading.flags) {
    if (!given.value) continue;
    if (given.flag->value.empty()) return given.typed + " takes no value" + see;
    const bool is_flag =
        *given.value == "--" || find_flag(*reading.command, *given.value) != nullptr;
    if (given.attached || !is_flag) continue;
    return given.typed + " needs a value before " + *given.value + ": " + given.flag->value.text() +
           see;
  }
  return std::nullopt;
}

std::optional<std::string> missing_value(const Reading& reading) {
  for (const GivenFlag& given : reading.flags) {
    if (given.flag->value.empty() || given.value) continue;
    return given.typed + " needs a value: " + given.flag->value.text() + see_help(*reading.command);
  }
  return std::nullopt;
}

std::optional<std::string> repeated(const Reading& reading) {
  std::set<const FlagText*> seen;
  for (const GivenFlag& given : reading.flags) {
    const bool one = !given.flag->value.empty() && !given.flag->several;
    if (!one || seen.insert(given.flag).second) continue;
    return given.typed + " is given twice: give it once" + see_help(*reading.command);
  }
  return std::nullopt;
}

std::optional<std::string> excluded(const Reading& reading) {
  for (const GivenFlag& one : reading.flags) {
    for (const GivenFlag& other : reading.flags) {
      if (std::ranges::count(one.flag->excludes, other.flag->name()) == 0) continue;
      return one.typed + " and " + other.typed + " exclude each other: give one of them" +
             see_help(*reading.command);
    }
  }
  return std::nullopt;
}

/// Returns the name of the argument at a place: `FILE`.
std::string argument_name(const CommandText& command, std::size_t place) {
  std::string name;
  for (const FlagText& flag : command.flags) {
    if (!flag.is_argument()) continue;
    name = flag.name();
    if (place-- == 0) break;
  }
  return name;
}

std::optional<std::string> empty_value(const Reading& reading) {
  const auto refused = [&](const std::string& name, const std::string& want) {
    return name + "='' is not allowed: " + want + see_help(*reading.command);
  };
  for (const GivenFlag& given : reading.flags) {
    if (given.value == "") return refused(given.typed, "a value, or the flag left out");
  }
  const auto empty = std::ranges::find(reading.arguments, "");
  if (empty == reading.arguments.end()) return std::nullopt;
  const auto place = static_cast<std::size_t>(empty - reading.arguments.begin());
  return refused(argument_name(*reading.command, place), "a value");
}

std::optional<std::string> missing(const Reading& reading) {
  const CommandText& command = *reading.command;
  if (command.choose) {
    return "a subcommand is required: " + join_or(command_names(command)) + see_help(command);
  }
  std::size_t arguments = 0;
  for (const FlagText& flag : command.flags) {
    const bool given = flag.is_argument()
                           ? arguments < reading.arguments.size()
                           : std::ranges::count(reading.flags, &flag, &GivenFlag::flag) != 0;
    if (flag.is_argument()) ++arguments;
    if (!flag.required || given) continue;
    const std::string allowed = flag.is_argument() ? "" : ": " + flag.value.text();
    return flag.name() + " is required" + allowed + see_help(command);
  }
  if (command.program && reading.program.empty()) {
    return "the program to run is missing: " + usage(command) + see_help(command);
  }
  return std::nullopt;
}

}  // namespace

std::string see_help(const CommandText& command) { return " (see " + command.name + " --help)"; }

std::string with_help(const CommandText& command, const std::string& refusal) {
  const std::string name = refusal.substr(0, refusal.find_first_of(" =:,"));
  const bool is_ours = std::ranges::any_of(command.flags, [&](const FlagText& flag) {
    return std::ranges::count(flag.names, name) != 0;
  });
  const std::string help = see_help(command);
  return is_ours && !refusal.ends_with(help) ? refusal + help : refusal;
}

std::string nearest(std::string_view word, const std::vector<std::string>& names) {
  constexpr std::size_t kLettersPerSlip = 3;
  constexpr std::size_t kMostSlips = 2;
  const std::size_t letters = word.size() - std::min(word.find_first_not_of('-'), word.size());
  std::size_t least = std::min(letters / kLettersPerSlip, kMostSlips) + 1;
  std::string found;
  for (const std::string& name : names) {
    const std::size_t here = distance(word, name);
    if (here >= least) continue;
    least = here;
    found = name;
  }
  return found;
}

std::optional<std::string> find_fault(const CommandText& program, const Reading& reading) {
  if (reading.unknown_flag) return unknown_flag(program, reading);
  if (auto fault = wrong_value(reading)) return fault;
  if (reading.unexpected) return unexpected(*reading.unexpected);
  if (auto fault = missing_value(reading)) return fault;
  if (auto fault = repeated(reading)) return fault;
  if (auto fault = excluded(reading)) return fault;
  if (auto fault = empty_value(reading)) return fault;
  return missing(reading);
}

}  // namespace weir
