#!/usr/bin/env bash
# Checks that weir-gpu ($1, of a rehearsal) asks a driver for each fact, on the stand-in driver in folder
# $2: what that answers is its own, and it says nothing about speed.
set -euo pipefail
program=$1
found=$(LD_LIBRARY_PATH=$2 "$program" facts)
failed=0

wrong() { echo "facts: wrong: $1 in: $found" && failed=1; }
# What must be in the answers: a text, or a pattern.
says() { [[ $found == *"$1"* ]] || wrong "there is no $1"; }
matches() { [[ $found =~ $1 ]] || wrong "nothing is like $1"; }
[[ $(grep -c '"fact":' <<<"$found") == 7 ]] || wrong "there are not 7"
[[ $found != *'"answered":false'* ]] || wrong "something is not answered"

says '"answer":"907"'
says '"answer":"900"'
[[ $(grep -c '"answer":"yes"' <<<"$found") == 2 ]] || wrong "pages do not outlive their context, or break a capture"
says '"answer":"an event on it waits"'
says '"answer":"the legacy stream waits"'
[[ $(grep -c '"otherwise":"memory may be handed out early"' <<<"$found") == 4 ]] ||
  wrong "the answers that fences count on are not 4"
says '"MIG off; NVML 1 TiB, free '
says "; of 256 MiB that are taken NVML sees 256 MiB, CUDA 256 MiB; the device's UUID is CUDA's\""

found=$(LD_LIBRARY_PATH=$2 WEIR_STANDIN_MIG=1 "$program" facts)
says '"MIG on; NVML 1 TiB, free '
says "CUDA 256 MiB; the device's UUID is another than CUDA's; part 0: 1 TiB, free "
matches "free [^;]*, its UUID is CUDA's\""

# A driver whose launches return at their end: a stream that is not busy any more says nothing of waits.
found=$(LD_LIBRARY_PATH=$2 WEIR_STANDIN_LAUNCHES_BLOCK=1 "$program" facts)
says '"answer":"the legacy stream cannot be told"'
[[ $found != *'"answered":false'* ]] || wrong "something is not answered"

# A program that ends in a question has written every answer before it.
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkfifo "$scratch/asked"
LD_LIBRARY_PATH=$2 "$program" facts >"$scratch/facts.json" 2>"$scratch/asked" &
job=$!
before=0
while read -r line; do
  if [[ $line == 'asked: cuStreamQuery of the legacy stream'* ]]; then break; fi
  before=$((before + 1))
done <"$scratch/asked"
kill -KILL "$job"
wait "$job" 2>/dev/null || true
found=$(<"$scratch/facts.json")
[[ $before == 5 ]] || wrong "only $before questions were told"
[[ $(grep -c '"answered":true' <<<"$found") -ge $before ]] || wrong "some of $before answers are lost"

# A driver without its management library: that question alone has no answer.
ln -s "$(realpath "$2")"/libcuda* "$scratch"
found=$(LD_LIBRARY_PATH=$scratch "$program" facts)
says '"answer":"not answered: there is no libnvidia-ml.so.1","answered":false'
[[ $(grep -c '"answered":false' <<<"$found") == 1 ]] || wrong "more than one is not answered"
exit "$failed"
