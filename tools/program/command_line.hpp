#pragma once

// Command lines: flags, arguments and subcommands. CLI11 reads them. Only
// command_line.cpp includes it: its headers take a compiler seconds in each source.

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "allocator/base/setting_line.hpp"
#include "tools/program/command_line/command_text.hpp"

namespace CLI {  // NOLINT(readability-identifier-naming): CLI11's name
class App;
class Option;
}  // namespace CLI

namespace weir {

struct Reading;

/// What a CommandLine knows of a flag or an argument.
struct FlagEntry {
  CLI::Option* option;
  FlagText text;
  std::string typed;  ///< the name that the user typed; empty if none
};

/// A flag, or an argument without a name, of a CommandLine, which must outlive it.
class Flag {
 public:
  explicit Flag(FlagEntry& entry) : entry_(&entry) {}

  /// Whether the user gave it.
  [[nodiscard]] bool given() const;
  /// Its name as the user typed it: `-o` or `--output`. Its long name if it is not given.
  [[nodiscard]] const std::string& typed() const;
  /// A command line without it is refused.
  Flag require() const;
  /// A command line with it and `other` is refused.
  Flag exclude(const Flag& other) const;
  /// Says that it overrides this environment variable.
  Flag over(const std::string& variable) const;

 private:
  FlagEntry* entry_;
};

/// The command line of a program or of one of its subcommands. What flags are read into must be
/// there until `parse` returns. For one thread.
///
/// Help and manual pages show flags in the order in which they are added: the most used first. They
/// begin with `about`, one sentence without capital and full stop.
class CommandLine {
 public:
  /// A program's.
  explicit CommandLine(const std::string& about);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  /// Adds a subcommand. It lives as long as this.
  CommandLine& add_command(const std::string& name, const std::string& about);
  /// A command line without one of the subcommands is refused.
  void require_command();
  /// Another program's command line follows after `--`. See program_words.
  void take_program();
  /// Whether the user named this subcommand.
  [[nodiscard]] bool named() const;

  /// Adds a flag without a value (`--name`).
  Flag add(const std::string& name, bool& set, const std::string& help);
  /// Adds a flag with a value (`--name`, or `-n,--name`), or an argument (`NAME`). Help shows what
  /// `text` holds now as the default, unless that is empty.
  Flag add(const std::string& name, std::string& text, const Value& value, const std::string& help);
  /// Adds one that takes several values.
  Flag add(const std::string& name, std::vector<std::string>& texts, const Value& value,
           const std::string& help);

  /// Adds --version, which prints `text`, and --completion, which prints a script for a shell. A
  /// build makes the manual pages with `PROGRAM --manual FOLDER DOCUMENTS`.
  void add_version(const std::string& text);
  /// Sets more sentences for the help and the manual page.
  void set_footer(const std::string& text);
  /// Sets the page about it, such as `docs/replay.md`.
  void set_page(const std::string& page);
  /// Sets the exit codes, also of those subcommands that do not set their own. Default: those of
  /// run_main without out of memory and interrupted.
  void set_exit_codes(std::vector<ExitCode> codes);

  /// Reads the words of `main`. Prints --help and --version and returns an exit code for them.
  /// Throws a UsageError of one line for a wrong flag, a missing or unknown subcommand or an empty
  /// value; it says how to get help. `program` is the program's name.
  [[nodiscard]] std::optional<int> parse(const std::string& program, int argc,
                                         const char* const* argv);
  /// Returns the words after `--`, where a command takes a program; else none.
  [[nodiscard]] const std::vector<std::string>& program_words() const noexcept {
    return program_words_;
  }

  /// Returns the flags that are given or have a default, for the settings in a program's JSON: the
  /// value as typed, `1` or `0` of a flag without one. Without --json.
  [[nodiscard]] std::vector<SettingLine> settings() const;
  /// Returns all that people see of it. `name` is its name as they type it.
  [[nodiscard]] CommandText describe(const std::string& name) const;

 private:
  explicit CommandLine(CLI::App& app);

  Flag add_entry(CLI::Option& option, FlagText text);
  void parse_words(const CommandText& text, const std::vector<std::string>& words);
  void note_typed(const CommandText& text, const Reading& reading);
  [[nodiscard]] bool takes_programs() const;

  std::unique_ptr<CLI::App> own_;  ///< of a program: CLI11 keeps those of its subcommands
  CLI::App& app_;
  std::deque<FlagEntry> flags_;  ///< a deque never moves them
  std::vector<std::unique_ptr<CommandLine>> commands_;
  std::vector<std::string> program_words_;
  std::string about_;
  std::string footer_;
  std::string page_;
  std::string version_;
  std::string completion_;
  std::vector<ExitCode> exit_codes_;
  bool program_ = false;
  bool choose_ = false;
};

}  // namespace weir
