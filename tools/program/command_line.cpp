#include "tools/program/command_line.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <sstream>
#include <vector>

#include "allocator/base/error.hpp"
#include "allocator/base/setting.hpp"
#include "tools/program/standard_streams.hpp"

namespace weir {
namespace {

int print_help(const CLI::App& app, const CLI::Success& asked) {
  std::ostringstream text;
  const int code = app.exit(asked, text, text);
  require_printed(print(text.str()));
  return code;
}

std::vector<const CLI::App*> subcommands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

/// Joins names as `run, compare or predict`.
std::string names_of(const std::vector<const CLI::App*>& commands) {
  std::string names;
  for (std::size_t i = 0; i < commands.size(); ++i) {
    if (i != 0) names += i + 1 == commands.size() ? " or " : ", ";
    names += commands[i]->get_name();
  }
  return names;
}

/// Returns the full name of the command that the user named: `weir`, `weir run`.
std::string called(const CLI::App& app, const std::string& program) {
  const std::vector<const CLI::App*> commands = subcommands_of(app);
  const auto named = std::ranges::find_if(commands, [](const auto* c) { return c->parsed(); });
  return named == commands.end() ? program : program + " " + (*named)->get_name();
}

[[noreturn]] void refuse_missing(const CLI::App& app, const std::string& program,
                                 const CLI::RequiredError& error) {
  const std::vector<const CLI::App*> commands = subcommands_of(app);
  const std::string command = called(app, program);
  if (commands.empty() || command != program) {
    throw UsageError(std::string(error.what()) + " (see " + command + " --help)");
  }
  // CLI11 reports a missing subcommand even if a wrong word stands in its place.
  const std::vector<std::string> rest = app.remaining();
  throw UsageError((rest.empty() ? error.what() : "'" + rest.front() + "' is not known") + ": " +
                   names_of(commands));
}

/// Throws UsageError if a flag of `app`, or of the named subcommand, has an empty value.
void refuse_empty_values(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->count() == 0) continue;
    if (!std::ranges::count(option->results(), std::string())) continue;
    refuse(option->get_name(), "", "a value, or the flag left out");
  }
  for (const CLI::App* command : subcommands_of(app)) {
    if (command->parsed()) refuse_empty_values(*command);
  }
}

}  // namespace

bool Flag::given() const { return option_->count() != 0; }

Flag Flag::require() const {
  option_->required();
  return *this;
}

Flag Flag::exclude(const Flag& other) const {
  option_->excludes(other.option_);
  return *this;
}

CommandLine::CommandLine(const std::string& about)
    : own_(std::make_unique<CLI::App>(about)), app_(*own_) {}

CommandLine::CommandLine(CLI::App& app) : app_(app) {}

CommandLine::~CommandLine() = default;

CommandLine& CommandLine::add_command(const std::string& name, const std::string& about) {
  commands_.emplace_back(new CommandLine(*app_.add_subcommand(name, about)));
  return *commands_.back();
}

void CommandLine::require_command() { app_.require_subcommand(1); }

bool CommandLine::named() const { return app_.parsed(); }

Flag CommandLine::add(const std::string& name, bool& set, const std::string& help) {
  return Flag(*app_.add_flag(name, set, help));
}

Flag CommandLine::add(const std::string& name, std::string& value, const std::string& help) {
  CLI::Option* const option = app_.add_option(name, value, help);
  if (!value.empty()) option->default_str(value);
  return Flag(*option);
}

Flag CommandLine::add(const std::string& name, std::vector<std::string>& values,
                      const std::string& help) {
  return Flag(*app_.add_option(name, values, help));
}

void CommandLine::add_version(const std::string& text) { app_.set_version_flag("--version", text); }

void CommandLine::set_footer(const std::string& text) { app_.footer(text); }

std::optional<int> CommandLine::parse(const std::string& program, int argc, const char* const* argv,
                                      const std::function<std::string()>& extras_hint) {
  try {
    app_.parse(argc, argv);
  } catch (const CLI::Success& asked) {
    return print_help(app_, asked);
  } catch (const CLI::RequiredError& error) {
    refuse_missing(app_, program, error);
  } catch (const CLI::ExtrasError& error) {
    throw UsageError(error.what() +
                     (extras_hint ? extras_hint() : " (see " + program + " --help)"));
  } catch (const CLI::ParseError& error) {
    throw UsageError(std::string(error.what()) + " (see " + program + " --help)");
  }
  refuse_empty_values(app_);
  return std::nullopt;
}

}  // namespace weir
