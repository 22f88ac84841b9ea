# Prints what bash offers for the words in "${@:3}", of which the last is being typed.
#
#   bash complete.bash PROGRAM COMPLETION WORD...   COMPLETION: the script of --completion bash
set -u
# shellcheck source=/dev/null
source "$2"
function=$(complete -p "$1" | sed -E 's/.*-F ([^ ]+) .*/\1/')
COMP_WORDS=("$1" "${@:3}")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
COMP_LINE="${COMP_WORDS[*]}"
COMP_POINT=${#COMP_LINE}
COMPREPLY=()
"$function" "$1" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
((${#COMPREPLY[@]} == 0)) || printf '%s\n' "${COMPREPLY[@]}"
