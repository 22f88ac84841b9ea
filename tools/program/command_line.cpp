#include "tools/program/command_line.hpp"

#include <algorithm>
#include <filesystem>

#include "allocator/base/bytes.hpp"
#include "allocator/base/error.hpp"
#include "tools/program/command_line/help.hpp"
#include "tools/program/command_line/reading.hpp"
#include "tools/program/further_reading.hpp"
#include "tools/program/output_file.hpp"
#include "tools/program/standard_streams.hpp"

namespace weir {
namespace {

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

/// `named` is what people type for the program in `text`.
int print_completion(const CommandText& text, const std::string& named, const std::string& shell) {
  if (shell != "bash" && shell != "zsh") {
    refuse("--completion", shell, "bash or zsh" + see_help(text));
  }
  // A shell completes the words of a program, and `weir-gpu train` is a word of another one.
  if (text.name != named) {
    throw UsageError("--completion is not for a program inside another" + see_help(text));
  }
  return print_all(shell == "bash" ? bash_completion(text) : zsh_completion(text));
}

/// Returns the help with what can be read here, which depends on how the program was installed.
std::string help_of(CommandText command) {
  command.page = further_reading(command, folder_of_program());
  return help_text(command, help_width(terminal_columns()));
}

bool asks_for(const Reading& reading, std::string_view flag) {
  return std::ranges::any_of(reading.flags, [flag](const GivenFlag& given) {
    return given.flag->name() == flag && !given.value;
  });
}

void take_value(FlagEntry& entry, const std::string& typed, const std::string& value) {
  if (bool* const* const set = std::get_if<bool*>(&entry.target)) **set = true;
  if (std::string* const* const text = std::get_if<std::string*>(&entry.target)) **text = value;
  if (auto* const* const texts = std::get_if<std::vector<std::string>*>(&entry.target)) {
    if (entry.values.empty()) (*texts)->clear();
    (*texts)->push_back(value);
  }
  entry.typed = typed;
  entry.values.push_back(value);
}

/// Returns the name that people type. A program inside another one has two words: weir-gpu train.
std::string typed_name(const std::string& program, std::string_view own) {
  own.remove_prefix(own.find_last_of('/') + 1);
  return own.find(' ') == std::string_view::npos ? program : std::string(own);
}

}  // namespace

bool Flag::given() const { return !entry_->typed.empty(); }

const std::string& Flag::typed() const {
  return entry_->typed.empty() ? entry_->text.name() : entry_->typed;
}

Flag Flag::require() const {
  entry_->text.required = true;
  return *this;
}

Flag Flag::exclude(const Flag& other) const {
  entry_->text.excludes.push_back(other.entry_->text.name());
  other.entry_->text.excludes.push_back(entry_->text.name());
  return *this;
}

Flag Flag::over(const std::string& variable) const {
  entry_->text.variable = variable;
  return *this;
}

CommandLine::CommandLine(const std::string& about)
    : about_(about),
      exit_codes_{
          {"0", "finished"}, {"1", "the program or the machine failed"}, {"2", "bad input"}} {}

CommandLine::~CommandLine() = default;

CommandLine& CommandLine::add_command(const std::string& name, const std::string& about) {
  commands_.push_back(std::make_unique<CommandLine>(about));
  commands_.back()->name_ = name;
  commands_.back()->exit_codes_ = exit_codes_;
  return *commands_.back();
}

void CommandLine::require_command() { choose_ = true; }

void CommandLine::take_program() { program_ = true; }

Flag CommandLine::add_entry(const std::string& names, FlagEntry entry) {
  for (std::size_t begin = 0; begin <= names.size();) {
    const std::size_t end = std::min(names.find(',', begin), names.size());
    entry.text.names.push_back(names.substr(begin, end - begin));
    begin = end + 1;
  }
  flags_.push_back(std::move(entry));
  return Flag(flags_.back());
}

Flag CommandLine::add(const std::string& name, bool& set, const std::string& help) {
  return add_entry(name, {.target = &set, .text = {.help = help}});
}

Flag CommandLine::add(const std::string& name, std::string& text, const Value& value,
                      const std::string& help) {
  return add_entry(
      name, {.target = &text, .text = {.value = value, .help = help, .default_value = text}});
}

Flag CommandLine::add(const std::string& name, std::vector<std::string>& texts, const Value& value,
                      const std::string& help) {
  return add_entry(name,
                   {.target = &texts, .text = {.value = value, .help = help, .several = true}});
}

void CommandLine::add_version(const std::string& text) {
  version_ = text;
  add("--completion", completion_, Value("bash|zsh"),
      "print what completes the commands, flags and values in this shell");
}

std::vector<SettingLine> CommandLine::settings() const {
  std::vector<SettingLine> lines;
  for (const FlagEntry& flag : flags_) {
    const std::string& name = flag.text.name();
    if (flag.text.is_argument() || name == "--json" || name == "--completion") continue;
    const bool given = !flag.typed.empty();
    std::string value = flag.text.default_value;
    if (flag.text.value.empty()) {
      value = given ? "1" : "0";
    } else if (given) {
      value.clear();
      for (const std::string& each : flag.values) value += (value.empty() ? "" : ",") + each;
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
    text.commands.push_back(command->describe(name + " " + command->name_));
    if (text.commands.back().page.empty()) text.commands.back().page = page_;
  }
  return text;
}

bool CommandLine::take(const CommandText& text, const Reading& reading) {
  named_ = reading.command == &text;
  std::size_t next = 0;                              // of the arguments
  for (std::size_t i = 0; i < flags_.size(); ++i) {  // `text` has our flags first
    for (const GivenFlag& given : reading.flags) {
      if (given.flag == &text.flags[i])
        take_value(flags_[i], given.typed, given.value.value_or(""));
    }
    if (!named_ || !text.flags[i].is_argument()) continue;
    for (bool more = true; more && next < reading.arguments.size(); more = text.flags[i].several) {
      take_value(flags_[i], text.flags[i].name(), reading.arguments[next++]);
    }
  }
  for (std::size_t i = 0; i < commands_.size(); ++i) {
    if (commands_[i]->take(text.commands[i], reading)) named_ = true;
  }
  return named_;
}

std::optional<int> CommandLine::parse(const std::string& program, int argc,
                                      const char* const* argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  const CommandText text = describe(typed_name(program, argv[0]));
  if (!version_.empty() && words.size() == 3 && words[0] == "--manual") {
    return write_manual(text, words[1], words[2]);
  }
  const Reading reading = read_words(text, words);
  // Whatever else is wrong: that may be why somebody asks.
  if (asks_for(reading, "--help")) return print_all(help_of(*reading.command));
  if (asks_for(reading, "--version")) return print_all(version_ + "\n");
  for (const GivenFlag& given : reading.flags) {
    if (given.flag->name() == "--completion" && given.value) {
      return print_completion(text, program, *given.value);
    }
  }
  if (const auto fault = find_fault(text, reading)) throw UsageError(*fault);
  take(text, reading);
  program_words_ = reading.program;
  named_text_ = *reading.command;
  return std::nullopt;
}

int CommandLine::run(const std::function<int()>& body) const {
  try {
    return body();
  } catch (const UsageError& error) {
    throw UsageError(with_help(named_text_, error.what()));
  }
}

}  // namespace weir
