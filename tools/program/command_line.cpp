#include "tools/program/command_line.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>

#include "allocator/base/bytes.hpp"
#include "allocator/base/error.hpp"
#include "allocator/base/setting.hpp"
#include "tools/program/command_line/completion.hpp"
#include "tools/program/command_line/fault.hpp"
#include "tools/program/command_line/help.hpp"
#include "tools/program/command_line/manual.hpp"
#include "tools/program/command_line/reading.hpp"
#include "tools/program/output_file.hpp"
#include "tools/program/standard_streams.hpp"

namespace weir {
namespace {

/// Returns the columns of a terminal, or those that COLUMNS names, at most 100; else 80.
std::size_t help_width() {
  constexpr std::size_t kLeast = 50;
  constexpr std::size_t kUsual = 80;
  constexpr std::size_t kMost = 100;
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col != 0) {
    return std::clamp<std::size_t>(size.ws_col, kLeast, kMost);
  }
  const char* const columns = process_environment()("COLUMNS");
  const auto wanted = columns == nullptr ? std::nullopt : parse_whole(columns);
  return wanted ? std::clamp<std::size_t>(*wanted, kLeast, kMost) : kUsual;
}

int print_all(const std::string& text) {
  require_printed(print(text));
  return 0;
}

int write_manual(const CommandText& program, const std::string& folder,
                 const std::string& documents) {
  std::filesystem::create_directories(folder);
  for (const ManualPage& page : manual_pages(program, documents)) {
    OutputFile("--manual", (std::filesystem::path(folder) / page.file).string()).commit(page.text);
  }
  return 0;
}

int print_completion(const CommandText& program, const std::string& shell) {
  if (shell == "bash") return print_all(bash_completion(program));
  if (shell == "zsh") return print_all(zsh_completion(program));
  refuse("--completion", shell, "bash or zsh");
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

/// Throws UsageError if a flag or an argument is empty.
void refuse_empty_values(const Reading& reading) {
  for (const GivenFlag& given : reading.flags) {
    if (given.value != "") continue;
    refuse(given.typed, "", "a value, or the flag left out" + see_help(*reading.command));
  }
  for (std::size_t i = 0; i < reading.arguments.size(); ++i) {
    if (!reading.arguments[i].empty()) continue;
    refuse(argument_name(*reading.command, i), "", "a value" + see_help(*reading.command));
  }
}

/// Returns the name that people type. A program inside another one has two words: weir-gpu train.
std::string typed_name(const std::string& program, std::string_view own) {
  own.remove_prefix(own.find_last_of('/') + 1);
  return own.find(' ') == std::string_view::npos ? program : std::string(own);
}

}  // namespace

bool Flag::given() const { return entry_->option->count() != 0; }

const std::string& Flag::typed() const {
  return entry_->typed.empty() ? entry_->text.name() : entry_->typed;
}

Flag Flag::require() const {
  entry_->option->required();
  entry_->text.required = true;
  return *this;
}

Flag Flag::exclude(const Flag& other) const {
  entry_->option->excludes(other.entry_->option);
  entry_->text.excludes.push_back(other.entry_->text.name());
  other.entry_->text.excludes.push_back(entry_->text.name());
  return *this;
}

Flag Flag::over(const std::string& variable) const {
  entry_->text.variable = variable;
  return *this;
}

CommandLine::CommandLine(const std::string& about)
    : own_(std::make_unique<CLI::App>()),
      app_(*own_),
      about_(about),
      exit_codes_{
          {"0", "finished"}, {"1", "the program or the machine failed"}, {"2", "bad input"}} {}

CommandLine::CommandLine(CLI::App& app) : app_(app) {}

CommandLine::~CommandLine() = default;

CommandLine& CommandLine::add_command(const std::string& name, const std::string& about) {
  commands_.emplace_back(new CommandLine(*app_.add_subcommand(name)));
  commands_.back()->about_ = about;
  commands_.back()->exit_codes_ = exit_codes_;
  return *commands_.back();
}

void CommandLine::require_command() {
  app_.require_subcommand(1);
  choose_ = true;
}

void CommandLine::take_program() { program_ = true; }

bool CommandLine::named() const { return app_.parsed(); }

Flag CommandLine::add_entry(CLI::Option& option, FlagText text) {
  flags_.push_back({.option = &option, .text = std::move(text), .typed = {}});
  FlagText& added = flags_.back().text;
  for (const std::string& name : option.get_snames()) added.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) added.names.push_back("--" + name);
  if (added.names.empty()) added.names.push_back(option.get_name(true));
  return Flag(flags_.back());
}

Flag CommandLine::add(const std::string& name, bool& set, const std::string& help) {
  return add_entry(*app_.add_flag(name, set), {.help = help});
}

Flag CommandLine::add(const std::string& name, std::string& text, const Value& value,
                      const std::string& help) {
  return add_entry(*app_.add_option(name, text),
                   {.value = value, .help = help, .default_value = text});
}

Flag CommandLine::add(const std::string& name, std::vector<std::string>& texts, const Value& value,
                      const std::string& help) {
  return add_entry(*app_.add_option(name, texts), {.value = value, .help = help, .several = true});
}

void CommandLine::add_version(const std::string& text) {
  version_ = text;
  app_.set_version_flag("--version", text);
  add("--completion", completion_, Value("bash|zsh"),
      "print what completes the commands, flags and values in this shell");
}

std::vector<SettingLine> CommandLine::settings() const {
  std::vector<SettingLine> lines;
  for (const FlagEntry& flag : flags_) {
    const std::string& name = flag.text.name();
    if (flag.text.is_argument() || name == "--json" || name == "--completion") continue;
    const bool given = flag.option->count() != 0;
    std::string value = flag.text.default_value;
    if (flag.text.value.empty()) {
      value = given ? "1" : "0";
    } else if (given) {
      value = CLI::detail::join(flag.option->results(), ",");
    }
    if (!given && value.empty()) continue;
    lines.push_back({name.substr(2), value, given ? name : "default"});
  }
  return lines;
}

void CommandLine::set_footer(const std::string& text) { footer_ = text; }

void CommandLine::set_page(const std::string& page) { page_ = page; }

void CommandLine::set_exit_codes(std::vector<ExitCode> codes) { exit_codes_ = std::move(codes); }

CommandText CommandLine::describe(const std::string& name) const {
  CommandText text{.name = name,
                   .about = about_,
                   .footer = footer_,
                   .page = page_,
                   .version = version_,
                   .program = program_,
                   .choose = choose_,
                   .exit_codes = exit_codes_};
  for (const FlagEntry& flag : flags_) text.flags.push_back(flag.text);
  if (!version_.empty()) {
    text.flags.push_back({.names = {"--version"}, .help = "print the version and exit"});
  }
  text.flags.push_back({.names = {"-h", "--help"}, .help = "print this help and exit"});
  for (const auto& command : commands_) {
    text.commands.push_back(command->describe(name + " " + command->app_.get_name()));
  }
  return text;
}

bool CommandLine::takes_programs() const {
  return program_ ||
         std::ranges::any_of(commands_, [](const auto& c) { return c->takes_programs(); });
}

void CommandLine::note_typed(const CommandText& text, const Reading& reading) {
  if (reading.command == &text) {
    for (const GivenFlag& given : reading.flags) {
      // `text` has our flags first.
      const auto place = static_cast<std::size_t>(given.flag - text.flags.data());
      if (place < flags_.size()) flags_[place].typed = given.typed;
    }
  }
  for (std::size_t i = 0; i < commands_.size(); ++i) {
    commands_[i]->note_typed(text.commands[i], reading);
  }
}

void CommandLine::parse_words(const CommandText& text, const std::vector<std::string>& words) {
  const Reading reading = read_words(text, words);
  std::vector<std::string> reversed(words.rbegin(), words.rend());  // as CLI11 takes them
  try {
    app_.parse(std::move(reversed));
  } catch (const CLI::Success&) {
    throw;
  } catch (const CLI::ParseError& error) {
    if (const auto fault = find_fault(text, reading)) throw UsageError(*fault);
    refuse_empty_values(reading);
    throw UsageError(error.what() + see_help(*reading.command));
  }
  if (const auto fault = find_wrong_value(reading)) throw UsageError(*fault);
  refuse_empty_values(reading);
  if (!program_words_.empty() && !reading.command->program) {
    throw UsageError(reading.command->name + " takes no arguments after --" +
                     see_help(*reading.command));
  }
  note_typed(text, reading);
}

std::optional<int> CommandLine::parse(const std::string& program, int argc,
                                      const char* const* argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  const CommandText text = describe(typed_name(program, argv[0]));
  if (!version_.empty() && words.size() == 3 && words[0] == "--manual") {
    return write_manual(text, words[1], words[2]);
  }
  for (const GivenFlag& given : read_words(text, words).flags) {
    if (given.typed == "--completion" && given.value) return print_completion(text, *given.value);
  }
  if (takes_programs()) {
    // Words after `--` are another program's, so they are not ours to read.
    const auto mark = std::ranges::find(words, "--");
    if (mark != words.end()) program_words_.assign(mark + 1, words.end());
    words.erase(mark, words.end());
  }
  try {
    parse_words(text, words);
  } catch (const CLI::CallForHelp&) {
    return print_all(help_text(*read_words(text, words).command, help_width()));
  } catch (const CLI::CallForVersion&) {
    return print_all(version_ + "\n");
  }
  return std::nullopt;
}

}  // namespace weir
