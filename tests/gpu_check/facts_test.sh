#!/usr/bin/env bash
# Checks that weir-gpu ($1) asks a driver for each fact, on the stand-in driver in folder $2: what that
# answers is its own, and what it does not imitate stays unanswered.
set -euo pipefail
program=$1
found=$(LD_LIBRARY_PATH=$2 "$program" facts)
failed=0

# What must be in the answers.
says() {
  [[ $found == *"$1"* ]] || { echo "facts: wrong: there is no $1 in: $found" && failed=1; }
}
[[ $(grep -c '"fact": ' <<<"$found") == 18 ]] || { echo "facts: wrong: there are 18" && failed=1; }
says '"the width up to a multiple of 512"'
says '"512 bytes"'
says '"906"'
says '"907"'
says '"2 MiB, recommended 2 MiB"'
[[ $found =~ \"create\ (waits|does\ not),\ .*\ release\ (waits|does\ not)\" ]] || {
  echo "facts: wrong: nothing is said of waits in: $found" && failed=1
}
[[ $found =~ \"create\ [0-9.]+\ us,\ map\ [0-9.]+\ us,\ set\ access\ [0-9.]+\ us,\ unmap\ [0-9.]+\ us,\ release\ [0-9.]+\ us\" ]] || {
  echo "facts: wrong: there is no cost of a page in: $found" && failed=1
}
exit "$failed"
