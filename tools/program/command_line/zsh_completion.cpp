#include <string_view>

#include "tools/program/command_line/help.hpp"

namespace weir {
namespace {

std::string function_name(const CommandText& command) {
  std::string name = "_" + command.name;
  for (char& each : name) {
    if (each == ' ') each = '_';
  }
  return name;
}

/// Quotes for a word in single quotes.
std::string single_quoted(std::string_view text) {
  std::string out = "'";
  for (const char each : text) {
    if (each == '\'') {
      out += "'\\''";
    } else {
      out += each;
    }
  }
  return out + "'";
}

/// Escapes what _arguments and _describe read as their own.
std::string plain(std::string_view text) {
  std::string out;
  for (const char each : text) {
    if (each == '[' || each == ']' || each == ':' || each == '\\') out += '\\';
    out += each;
  }
  return out;
}

/// Returns `:what it is:action` of a value.
std::string action_of(const Value& value) {
  std::string actions;
  if (!value.names().empty()) {
    actions = "(";
    for (const std::string& name : value.names()) actions += (actions == "(" ? "" : " ") + name;
    actions += ")";
  }
  // _alternative would show names and files together; no flag takes both.
  if (value.is_folder()) actions = "_files -/";
  if (value.is_file()) actions = "_files";
  return ":" + plain(value.text()) + ":" + actions;
}

std::string flag_spec(const FlagText& flag) {
  const std::string value = flag.value.empty() ? "" : action_of(flag.value);
  std::string others;
  if (flag.names.size() > 1) {
    for (const std::string& name : flag.names) others += (others.empty() ? "(" : " ") + name;
    others += ")";
  }
  std::string text;
  for (const std::string& name : flag.names) {
    // --flag VALUE and --flag=VALUE
    std::string spec = others + name;
    if (!flag.value.empty() && name.starts_with("--")) spec += '=';
    spec.append("[").append(plain(flag.help)).append("]").append(value);
    text += " \\\n    " + single_quoted(spec);
  }
  return text;
}

std::string specs_of(const CommandText& command) {
  std::string text;
  for (const FlagText& flag : command.flags) {
    if (!flag.is_argument()) {
      text += flag_spec(flag);
    } else {
      text += " \\\n    " + single_quoted((flag.several ? "*" : "") + action_of(flag.value));
    }
  }
  return text;
}

/// A program's own completion follows after `--`.
constexpr std::string_view kProgram = R"(  local mark=${words[(ie)--]}
  if ((mark < CURRENT)); then
    shift $mark words
    ((CURRENT -= mark))
    _normal
    return
  fi
)";

std::string function_of(const CommandText& command) {
  std::string text = "\n" + function_name(command) + "() {\n";
  if (command.program) text += kProgram;
  if (command.commands.empty()) {
    text += "  _arguments -s -S" + specs_of(command);
    if (command.program) text += " \\\n    '*:the program comes after --:(--)'";
    return text + "\n}\n";
  }
  text += "  local context state state_descr line curcontext=$curcontext\n  typeset -A opt_args\n";
  text += "  _arguments -C -S" + specs_of(command) +
          " \\\n    '1:command:->command' \\\n    '*::arguments:->arguments' && return\n";
  text += "  case $state in\n    command)\n      local -a commands=(";
  for (const CommandText& each : command.commands) {
    text += "\n        " + single_quoted(std::string(each.last_name()) + ":" + plain(each.about));
  }
  text +=
      "\n      )\n      _describe command commands\n      ;;\n    arguments)\n      case $words[1] "
      "in\n";
  for (const CommandText& each : command.commands) {
    text.append("        ")
        .append(each.last_name())
        .append(") ")
        .append(function_name(each))
        .append(" ;;\n");
  }
  text += "      esac\n      ;;\n  esac\n}\n";
  for (const CommandText& each : command.commands) text += function_of(each);
  return text;
}

}  // namespace

std::string zsh_completion(const CommandText& program) {
  const std::string name = function_name(program);
  std::string text = "#compdef " + program.name + "\n# Completes " + program.name +
                     " in zsh. Made by: " + program.name + " --completion zsh\n";
  text += function_of(program);
  // compinit calls the file as the function at its first use; `source` only defines it.
  text += "\nif [[ $zsh_eval_context[-1] == loadautofunc ]]; then\n  " + name +
          " \"$@\"\nelse\n  compdef " + name + " " + program.name + "\nfi\n";
  return text;
}

}  // namespace weir
