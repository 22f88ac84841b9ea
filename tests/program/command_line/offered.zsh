# Makes the shell print each candidate of a completion. Read by complete.zsh; $1: the folder.
PROMPT= PROMPT2= RPROMPT=
unset zle_bracketed_paste
unsetopt prompt_sp prompt_cr beep auto_list auto_menu
fpath=($1 $fpath)
autoload -U compinit
compinit -u -d $1/dump
zstyle ':completion:*' list-dirs-first false
bindkey '^I' complete-word
bindkey '^U' kill-whole-line
say_end() {
  print -r -- '>end<'
  comppostfuncs=(say_end)  # which zsh empties each time
}
comppostfuncs=(say_end)
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
