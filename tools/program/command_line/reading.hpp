#pragma once

// Finds what each word of a command line is, and says in one line what is wrong with it.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/program/command_line/command_text.hpp"

namespace weir {

/// A flag that a user gave.
struct GivenFlag {
  const FlagText* flag;
  std::string typed;                 ///< its name as the user typed it
  std::optional<std::string> value;  ///< the value that was typed, if any
  bool attached = false;             ///< the value was typed in the same word
};

/// A word that is nothing where it stands.
struct StrayWord {
  std::string word;            ///< of a flag, its name
  const CommandText* command;  ///< the command that was named before it
  std::string whole;           ///< with a value that was typed in the same word
};

/// What the words of a command line are. It points into the CommandText that it was read with.
struct Reading {
  const CommandText* command = nullptr;   ///< the command that the user named
  std::vector<GivenFlag> flags;           ///< of that command, and of those that it is below
  std::vector<std::string> arguments;     ///< of that command
  std::vector<std::string> program;       ///< the words after `--`, if that command takes a program
  std::optional<StrayWord> unknown_flag;  ///< the first word that looks like a flag and is none
  std::optional<StrayWord> unexpected;    ///< the first word that is neither command nor argument
};

/// Reads the words after the program's name. Never fails.
[[nodiscard]] Reading read_words(const CommandText& program, std::span<const std::string> words);

/// Returns the flag of `command` with that name; null if there is none.
[[nodiscard]] const FlagText* find_flag(const CommandText& command, std::string_view name);

/// Returns what is wrong with the words, and which --help to read; nullopt if nothing is.
[[nodiscard]] std::optional<std::string> find_fault(const CommandText& program,
                                                    const Reading& reading);
/// Returns ` (see COMMAND --help)`.
[[nodiscard]] std::string see_help(const CommandText& command);
/// Returns the refusal with that at its end, if it begins with the name of a flag or an argument of
/// the command.
[[nodiscard]] std::string with_help(const CommandText& command, const std::string& refusal);
/// Returns the name that `word` was probably meant to be; empty if none is near.
[[nodiscard]] std::string nearest(std::string_view word, const std::vector<std::string>& names);

}  // namespace weir
