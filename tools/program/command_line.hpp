#pragma once

// Command lines: flags, arguments and subcommands. CLI11 reads them. Only
// command_line.cpp includes it: its headers take a compiler seconds in each source.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): CLI11's name
class App;
class Option;
}  // namespace CLI

namespace weir {

/// A flag, or an argument without a name, of a CommandLine, which must outlive it.
class Flag {
 public:
  explicit Flag(CLI::Option& option) : option_(&option) {}

  /// Whether the user gave it.
  [[nodiscard]] bool given() const;
  /// A command line without it is refused.
  Flag require() const;
  /// A command line with it and `other` is refused.
  Flag exclude(const Flag& other) const;

 private:
  CLI::Option* option_;
};

/// The command line of a program or of one of its subcommands. What flags are read into must be
/// there until `parse` returns. For one thread.
class CommandLine {
 public:
  /// A program's. `about` is the first line of its help.
  explicit CommandLine(const std::string& about);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  /// Adds a subcommand. It lives as long as this.
  CommandLine& add_command(const std::string& name, const std::string& about);
  /// A command line without one of the subcommands is refused.
  void require_command();
  /// Whether the user named this subcommand.
  [[nodiscard]] bool named() const;

  /// Adds a flag without a value (`--name`).
  Flag add(const std::string& name, bool& set, const std::string& help);
  /// Adds a flag with a value (`--name`, or `-n,--name`), or an argument (`NAME`). Help shows what
  /// `value` holds now as the default, unless that is empty.
  Flag add(const std::string& name, std::string& value, const std::string& help);
  /// Adds one that takes several values.
  Flag add(const std::string& name, std::vector<std::string>& values, const std::string& help);

  /// Adds --version, which prints `text`.
  void add_version(const std::string& text);
  /// Sets the text at the end of the help.
  void set_footer(const std::string& text);

  /// Reads the words of `main`. Prints --help and --version and returns an exit code for them.
  /// Throws a one-line UsageError for a wrong flag, a missing or unknown subcommand or an empty
  /// value; it says how to get help. `program` is the program's name. `extras_hint` returns the
  /// message for words that no flag takes; it may be empty.
  [[nodiscard]] std::optional<int> parse(const std::string& program, int argc,
                                         const char* const* argv,
                                         const std::function<std::string()>& extras_hint = {});

 private:
  explicit CommandLine(CLI::App& app);

  std::unique_ptr<CLI::App> own_;  ///< of a program: CLI11 keeps those of its subcommands
  CLI::App& app_;
  std::vector<std::unique_ptr<CommandLine>> commands_;
};

}  // namespace weir
