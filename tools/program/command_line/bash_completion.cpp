#include <string_view>

#include "tools/program/command_line/help.hpp"

namespace weir {
namespace {

/// Finds the command that the words before the cursor name, and what stands at the cursor. `NAME`
/// is the program's name as a shell's name.
constexpr std::string_view kFunctions = R"(
# Offers those of the words $1 that begin with $2. @file stands for all files, @folder for all folders.
_NAME_offer() {
  local found plain=${2#[\'\"]} before='' words=${1//@file/} breaks
  words=${words//@folder/}
  if [[ $2 != [\'\"]* ]]; then
    # Bash replaces only what follows the last of these, unless that has a backslash.
    breaks=${COMP_WORDBREAKS//[^:=]/}
    if [[ -n $breaks ]]; then
      before=${2//\\[:=]/__}
      before=${before##*[$breaks]}
      before=${2:0:${#2}-${#before}}
    fi
    # Takes the backslashes out.
    # shellcheck disable=SC2162
    IFS= read plain <<<"$2"
    # shellcheck disable=SC2162
    IFS= read before <<<"$before"
  fi
  found=$(
    case $1 in
      *@file*) compgen -f -- "$plain" ;;
      *@folder*) compgen -d -- "$plain" ;;
    esac
    compgen -W "$words" -- "$plain"
  )
  [[ -n $found ]] || return
  [[ $1 != *@* ]] || compopt -o filenames 2>/dev/null
  mapfile -t COMPREPLY <<<"$found"
  COMPREPLY=("${COMPREPLY[@]#"$before"}")
  COMPREPLY=("${COMPREPLY[@]/#/$lead}")
}

# Completes the program after --, which begins at word $1. $2 is typed.
_NAME_program() {
  if declare -F _command_offset >/dev/null; then
    _command_offset "$1"
  elif ((COMP_CWORD == $1)); then
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -c -A file -- "$2")
  else
    _NAME_offer @file "$2"
  fi
}

_NAME() {
  local command=PROGRAM flag='' ended='' lead='' word i rest=${COMP_LINE:0:COMP_POINT}
  local -a typed=() places=()
  local commands flags arguments program values
  COMPREPLY=()
  # Bash has split the words at = and : too: what no blank separates is one word.
  rest=${rest#*"${COMP_WORDS[0]}"}
  for ((i = 1; i <= COMP_CWORD; ++i)); do
    if [[ $rest == [[:space:]]* ]]; then
      rest=${rest#"${rest%%[![:space:]]*}"}
      typed+=('')
      places+=("$i")
    fi
    word=${COMP_WORDS[i]}
    ((i < COMP_CWORD)) || word=$rest
    typed[${#typed[@]} - 1]+=$word
    rest=${rest#"$word"}
  done
  _NAME_words
  for ((i = 0; i + 1 < ${#typed[@]}; ++i)); do
    word=${typed[i]}
    if [[ -n $flag ]]; then
      flag=''
    elif [[ $word == -- && -n $program ]]; then
      _NAME_program $((places[i] + 1)) "${typed[${#typed[@]} - 1]}"
      return
    elif [[ $word == -- ]]; then
      ended=yes
    elif [[ $word == -* ]]; then
      _NAME_values "$word" && flag=$word
    elif [[ " $commands " == *" $word "* ]]; then
      command+=" $word"
      _NAME_words
    fi
  done
  word=${typed[i]}
  if [[ -z $flag && $word == --*=* ]]; then
    flag=${word%%=*}
    word=${word#*=}
    [[ $COMP_WORDBREAKS == *=* ]] || lead=$flag=
  fi
  if [[ -n $flag ]]; then
    _NAME_values "$flag"
    _NAME_offer "$values" "$word"
  elif [[ $word == -* && -z $ended ]]; then
    _NAME_offer "$flags" "$word"
  elif [[ -n $commands ]]; then
    _NAME_offer "$commands" "$word"
  elif [[ -n $arguments || -n $ended ]]; then
    _NAME_offer "$arguments" "$word"
  else
    _NAME_offer "$flags" "$word"
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
