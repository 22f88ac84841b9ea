#include <string_view>

#include "tools/program/command_line/completion.hpp"

namespace weir {
namespace {

/// Finds the command that the words before the cursor name, and what stands at the cursor. `NAME`
/// is the program's name as a shell's name. Bash has split the words at `=`, and at `:`.
constexpr std::string_view kFunctions = R"(
# Offers what begins with $2 of the words $1, among which @file and @folder stand for those.
_NAME_offer() {
  local found words=${1//@file/}
  words=${words//@folder/}
  found=$(
    case $1 in
      *@file*) compgen -f -- "$2" ;;
      *@folder*) compgen -d -- "$2" ;;
    esac
    compgen -W "$words" -- "$2"
  )
  [[ $1 != *@* ]] || compopt -o filenames 2>/dev/null
  [[ -z $found ]] || mapfile -t COMPREPLY <<<"$found"
}

# Completes the program after --, which begins at word $1.
_NAME_program() {
  if declare -F _command_offset >/dev/null; then
    _command_offset "$1"
  elif ((COMP_CWORD == $1)); then
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -c -A file -- "${COMP_WORDS[COMP_CWORD]}")
  else
    _NAME_offer @file "${COMP_WORDS[COMP_CWORD]}"
  fi
}

_NAME() {
  local command=PROGRAM current=${COMP_WORDS[COMP_CWORD]} flag='' word i
  local commands flags arguments program values
  COMPREPLY=()
  _NAME_words
  for ((i = 1; i < COMP_CWORD; ++i)); do
    word=${COMP_WORDS[i]}
    if [[ $word == -- && -n $program ]]; then
      _NAME_program $((i + 1))
      return
    fi
    if [[ -n $flag ]]; then
      [[ $word == = ]] || flag=''
    elif [[ $word == -* ]]; then
      _NAME_values "$word" && flag=$word
    elif [[ " $commands " == *" $word "* ]]; then
      command+=" $word"
      _NAME_words
    fi
  done
  [[ $current != = ]] || current=''
  if [[ -n $flag ]]; then
    _NAME_values "$flag"
    _NAME_offer "$values" "$current"
  elif [[ $current == -* ]]; then
    _NAME_offer "$flags" "$current"
  elif [[ -n $commands ]]; then
    _NAME_offer "$commands" "$current"
  elif [[ -n $arguments ]]; then
    _NAME_offer "$arguments" "$current"
  else
    _NAME_offer "$flags" "$current"
  fi
}

complete -F _NAME PROGRAM
)";

std::string shell_name(std::string name) {
  for (char& each : name) {
    if (each == '-' || each == ' ') each = '_';
  }
  return name;
}

std::string replaced(std::string_view text, const CommandText& program) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    if (text.substr(at).starts_with("_NAME")) {
      out += "_" + shell_name(program.name);
      at += 5;
    } else if (text.substr(at).starts_with("PROGRAM")) {
      out += program.name;
      at += 7;
    } else {
      out += text[at++];
    }
  }
  return out;
}

std::string values_of(const Value& value) {
  std::string text;
  for (const std::string& name : value.names()) text += (text.empty() ? "" : " ") + name;
  if (value.is_file()) text += " @file";
  if (value.is_folder()) text += " @folder";
  return text;
}

std::string words_case(const CommandText& command) {
  std::string commands;
  std::string flags;
  std::string arguments;
  for (const CommandText& each : command.commands) {
    commands.append(commands.empty() ? "" : " ").append(each.last_name());
  }
  for (const FlagText& flag : command.flags) {
    if (flag.is_argument()) {
      arguments += values_of(flag.value);
      continue;
    }
    for (const std::string& name : flag.names) flags += (flags.empty() ? "" : " ") + name;
  }
  if (command.program) flags += " --";
  std::string text = "    '" + command.name + "') commands='" + commands + "' flags='" + flags +
                     "' arguments='" + arguments + "' program='" + (command.program ? "yes" : "") +
                     "' ;;\n";
  for (const CommandText& each : command.commands) text += words_case(each);
  return text;
}

std::string values_case(const CommandText& command) {
  std::string text;
  for (const FlagText& flag : command.flags) {
    if (flag.is_argument() || flag.value.empty()) continue;
    std::string patterns;
    for (const std::string& name : flag.names) {
      patterns += (patterns.empty() ? "'" : " | '") + command.name + " " + name + "'";
    }
    text += "    " + patterns + ") values='" + values_of(flag.value) + "' ;;\n";
  }
  for (const CommandText& each : command.commands) text += values_case(each);
  return text;
}

}  // namespace

std::string bash_completion(const CommandText& program) {
  std::string text = "# Completes PROGRAM in bash. Made by: PROGRAM --completion bash\n";
  text += "\n# Sets what may follow $command.\n_NAME_words() {\n  case $command in\n" +
          words_case(program) + "  esac\n}\n";
  text +=
      "\n# Sets what the flag $1 of $command takes. Fails if it takes no value.\n_NAME_values() {\n"
      "  values=''\n  case \"$command $1\" in\n" +
      values_case(program) + "    *) return 1 ;;\n  esac\n}\n";
  return replaced(text + std::string(kFunctions), program);
}

}  // namespace weir
