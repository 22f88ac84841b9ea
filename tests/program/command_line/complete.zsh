# Prints for each line of standard input what zsh offers at its end, and >end<: types it into a shell of its own and
# presses Tab.
#
#   zsh -f complete.zsh FOLDER    FOLDER: has the completions of --completion zsh as _PROGRAM
zmodload zsh/zpty
zpty typed zsh -f -i
zpty -w typed "source ${(q)0:A:h}/offered.zsh ${(q)1}"
until [[ $text == *ready$'\r'* ]] { zpty -r typed text || exit 1 }
while IFS= read -r line; do
  zpty -w -n typed $'\C-u'"$line"$'\t'
  all= text=
  until [[ $text == *'>end<'* ]] { zpty -r typed text || exit 1; all+=$text }
  for each in ${(f)all//$'\r'/}; do
    [[ $each != *'>offer<'* ]] || print -r -- ${each##*'>offer<'}
  done
  print '>end<'
done
