# Prints what zsh offers at the end of a line: types it into a shell of its own and presses Tab.
#
#   zsh -f complete.zsh FOLDER LINE    FOLDER: has the completions of --completion zsh as _PROGRAM
zmodload zsh/zpty
zpty typed zsh -f -i
zpty -w typed "source ${(q)0:A:h}/offered.zsh ${(q)1}"
until [[ $text == *ready$'\r'* ]] { zpty -r typed text || exit 1 }
zpty -w -n typed "$2"$'\t'
all=
while zpty -r typed text; do
  all+=$text
  [[ $text != *'>end<'* ]] || break
done
zpty -d typed
for line in ${(f)all//$'\r'/}; do
  [[ $line != *'>offer<'* ]] || print -r -- ${line##*'>offer<'}
done
