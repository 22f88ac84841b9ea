#include <algorithm>
#include <map>

#include "tools/program/command_line/help.hpp"

namespace weir {
namespace {

/// Escapes what man(7) would read as its own. A hyphen becomes a minus sign, as people type it.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char each : text) {
    if (each == '\\') {
      out += "\\e";
    } else if (each == '-') {
      out += "\\-";
    } else {
      out += each;
    }
  }
  return out.starts_with('.') || out.starts_with('\'') ? "\\&" + out : out;
}

std::string bold(std::string_view text) { return "\\fB" + escaped(text) + "\\fR"; }
std::string italic(std::string_view text) { return "\\fI" + escaped(text) + "\\fR"; }

bool is_placeholder(std::string_view word) {
  return std::ranges::any_of(word, [](char each) { return each >= 'A' && each <= 'Z'; });
}

/// Returns the word in italics; brackets around it and dots after it stay upright.
std::string placeholder(std::string_view word) {
  const bool optional = word.starts_with('[') && word.ends_with(']');
  if (optional) return "[" + placeholder(word.substr(1, word.size() - 2)) + "]";
  const bool several = word.ends_with("...");
  return italic(word.substr(0, word.size() - (several ? 3 : 0))) + (several ? "..." : "");
}

/// Returns alternatives, of which placeholders are in italics and names are bold.
std::string value_of(const std::string& text) {
  std::string out;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('|', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    out += (begin == 0 ? "" : "|") + (is_placeholder(word) ? placeholder(word) : bold(word));
    begin = end + 1;
  }
  return out;
}

std::string page_name(const CommandText& command) {
  std::string name = command.name;
  std::ranges::replace(name, ' ', '-');
  return name;
}

/// Returns the usage with the words that are typed as they are in bold.
std::string synopsis(const CommandText& command) {
  const std::string text = usage(command).substr(command.name.size());
  std::string out = bold(command.name);
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t word = text.find_first_not_of(' ', begin);
    const std::size_t end = std::min(text.find(' ', word), text.size());
    const std::string each = text.substr(word, end - word);
    out += " " + (each.starts_with('-') ? bold(each) : value_of(each));
    begin = end;
  }
  return out + "\n";
}

std::string heading_for(const FlagText& flag) {
  std::string text;
  if (flag.is_argument()) return italic(flag.name()) + (flag.several ? "..." : "");
  for (const std::string& name : flag.names) text += (text.empty() ? "" : ", ") + bold(name);
  return flag.value.empty() ? text : text + " " + value_of(flag.value.text());
}

std::string paragraph(const std::string& text) {
  return text.empty() ? "" : ".PP\n" + escaped(text) + "\n";
}

std::string described(const CommandText& command) {
  return escaped(sentence(command.about)) + "\n" + paragraph(command.footer);
}

std::string options_of(const CommandText& command) {
  std::string text;
  for (const bool arguments : {true, false}) {
    for (const FlagText& flag : command.flags) {
      if (flag.is_argument() != arguments) continue;
      text += ".TP\n" + heading_for(flag) + "\n" + escaped(full_help(flag)) + "\n";
    }
  }
  return text + paragraph(explain_values(command));
}

/// The commands of the program, each with its page.
std::string list_of_commands(const CommandText& program) {
  std::string text = ".SH COMMANDS\n";
  for (const CommandText& each : program.commands) {
    text += ".TP\n" + bold(page_name(each)) + "(1)\n" + escaped(sentence(each.about)) + "\n";
  }
  return text;
}

/// The subcommands of a command, all of each.
std::string subcommands_of(const CommandText& command) {
  std::string text = ".SH COMMANDS\n";
  for (const CommandText& each : command.commands) {
    text += ".SS " + escaped(each.name) + "\n" + synopsis(each) + ".PP\n" + described(each) +
            options_of(each);
  }
  return text;
}

/// Lists exit codes; those of subcommands that have others under their names.
std::string exit_status(const CommandText& command) {
  std::string text;
  for (const ExitCode& each : command.exit_codes) {
    text += ".TP\n" + bold(each.code) + "\n" + escaped(sentence(each.meaning)) + "\n";
  }
  return text;
}

bool same_codes(const CommandText& one, const CommandText& other) {
  return std::ranges::equal(
      one.exit_codes, other.exit_codes, {},
      [](const ExitCode& each) { return each.code + each.meaning; },
      [](const ExitCode& each) { return each.code + each.meaning; });
}

/// Adds what each variable is the same as: a flag, or a flag of a subcommand of `page`.
void add_variables(const CommandText& command, const CommandText& page,
                   std::map<std::string, std::string>& variables) {
  for (const FlagText& flag : command.flags) {
    if (flag.variable.empty()) continue;
    const std::string of = &command == &page ? "" : " of " + bold(command.name);
    variables.emplace(flag.variable, bold(flag.name()) + of);
  }
  for (const CommandText& each : command.commands) add_variables(each, page, variables);
}

std::string environment_of(const CommandText& command, const CommandText& program) {
  std::map<std::string, std::string> variables;
  add_variables(command, command, variables);
  if (variables.empty()) return "";
  if (&command == &program) {
    return ".SH ENVIRONMENT\nThe page of a command lists the variables that its flags override.\n";
  }
  std::string text = ".SH ENVIRONMENT\nA flag overrides its variable.\n";
  for (const auto& [variable, flag] : variables) {
    text += ".TP\n" + bold(variable) + "\nThe same as " + flag + ".\n";
  }
  return text;
}

std::string title_of(const CommandText& command, const CommandText& program) {
  std::string name = page_name(command);
  std::ranges::transform(name, name.begin(), [](char each) {
    return each >= 'a' && each <= 'z' ? static_cast<char>(each - 'a' + 'A') : each;
  });
  return ".TH " + escaped(name) + R"( 1 "" ")" + program.version + R"(" "User Commands")" +
         "\n.nh\n.ad l\n";
}

std::string see_also(const CommandText& command, const CommandText& program,
                     const std::string& documents) {
  std::string text = ".SH SEE ALSO\n";
  std::string names;
  if (&command != &program) names += bold(program.name) + "(1)";
  for (const CommandText& each : program.commands) {
    if (&each == &command) continue;
    names += (names.empty() ? "" : ",\n") + bold(page_name(each)) + "(1)";
  }
  text += names + "\n";
  if (!command.page.empty()) text += ".PP\n" + italic(documents + "/" + command.page) + "\n";
  return text;
}

ManualPage page_of(const CommandText& command, const CommandText& program,
                   const std::string& documents) {
  const std::string name = page_name(command);
  std::string text = title_of(command, program);
  text += ".SH NAME\n" + escaped(name) + " \\- " + escaped(command.about) + "\n";
  text += ".SH SYNOPSIS\n" + synopsis(command);
  for (const CommandText& each : command.commands) {
    if (&command != &program) text += ".br\n" + synopsis(each);
  }
  text += ".SH DESCRIPTION\n" + described(command);
  if (&command == &program && !command.commands.empty()) text += list_of_commands(command);
  text += ".SH OPTIONS\n" + options_of(command);
  if (&command != &program && !command.commands.empty()) text += subcommands_of(command);
  text += ".SH EXIT STATUS\n" + exit_status(command);
  for (const CommandText& each : command.commands) {
    if (&command == &program || same_codes(each, command)) continue;
    text += ".SS " + escaped(each.name) + "\n" + exit_status(each);
  }
  text += environment_of(command, program) + see_also(command, program, documents);
  return {name + ".1", text};
}

}  // namespace

std::vector<ManualPage> manual_pages(const CommandText& program, const std::string& documents) {
  std::vector<ManualPage> pages{page_of(program, program, documents)};
  for (const CommandText& each : program.commands) {
    pages.push_back(page_of(each, program, documents));
  }
  return pages;
}

}  // namespace weir
