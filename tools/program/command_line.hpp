#pragma once

// Command lines: flags, arguments and subcommands.

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "allocator/base/setting.hpp"
#include "tools/program/command_line/command_text.hpp"

namespace weir {

struct Reading;

/// What a CommandLine knows of a flag or an argument.
struct FlagEntry {
  std::variant<bool*, std::string*, std::vector<std::string>*> target;  ///< what it is read into
  FlagText text;
  std::string typed{};                ///< its name as the user typed it; empty if not given
  std::vector<std::string> values{};  ///< those that the user gave
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
  /// Another program's command line must follow after `--`. See program_words.
  void take_program();
  /// Whether the user named this subcommand.
  [[nodiscard]] bool named() const noexcept { return named_; }

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
  /// Runs `body`, which does what the user named, and returns its exit code. A UsageError of it
  /// that begins with the name of a flag or an argument gets how to get help. Call after `parse`.
  int run(const std::function<int()>& body) const;
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
  Flag add_entry(const std::string& names, FlagEntry entry);
  /// Reads the flags and arguments into what they belong to. Returns whether this, or a command
  /// below, is the one that was named.
  bool take(const CommandText& text, const Reading& reading);

  std::deque<FlagEntry> flags_;  ///< a deque never moves them
  std::vector<std::unique_ptr<CommandLine>> commands_;
  std::vector<std::string> program_words_;
  std::string name_;  ///< of a subcommand: the word that names it
  std::string about_;
  std::string footer_;
  std::string page_;
  std::string version_;
  std::string completion_;
  std::vector<ExitCode> exit_codes_;
  CommandText named_text_;  ///< of a program: the command that was named
  bool program_ = false;
  bool choose_ = false;
  bool named_ = false;
};

}  // namespace weir
