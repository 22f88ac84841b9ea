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
[[ $(grep -c '"fact": ' <<<"$found") == 8 ]] || { echo "facts: wrong: there are eight" && failed=1; }
says '"the width up to a multiple of 512"'
says '"512 bytes"'
says '"906"'
says '"907"'
exit "$failed"
