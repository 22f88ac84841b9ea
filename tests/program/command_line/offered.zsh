# Makes the shell print each candidate of a completion. Read by complete.zsh; $1: the folder.
PROMPT= PROMPT2= RPROMPT=
unset zle_bracketed_paste
unsetopt prompt_sp prompt_cr beep
fpath=($1 $fpath)
autoload -U compinit
compinit -u -d $1/dump
zstyle ':completion:*' list-dirs-first false
bindkey '^I' complete-word
comppostfuncs=(say_end)
say_end() { print -r -- '>end<'; exit }
# As the builtin, and tells what it adds.
compadd() {
  if [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]]; then
    builtin compadd "$@"
    return
  fi
  local -a found
  builtin compadd -A found "$@"
  local each
  for each in $found; do print -r -- ">offer<$each"; done
  builtin compadd "$@"
}
print ready
