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
[[ $(grep -c '"fact":' <<<"$found") == 38 ]] || wrong "there are not 38"
[[ $found != *'"answered":false'* ]] || wrong "something is not answered"

says '"the width up to a multiple of 512"'
says '"512 bytes"'
says '"906"'
says '"907"'
says '"2 MiB, recommended 2 MiB"'
says '"yes, and a write is seen at both"'
us='[0-9.]+ us'
page="create $us, map $us, set access $us, unmap $us, release $us"
[[ $(grep -cE "\"$page\"" <<<"$found") -ge 2 ]] || wrong "the costs of a page and of a large one are not there"
matches "\"$page(; the kernels ended meanwhile)?\""
matches "\"map $us, set access $us, unmap $us\""
matches "\"unmap $us\""
says '"of 4 bytes more, with an event more, with one to sleep on more; host functions more"'
for busy in 'a host function' 'a kernel'; do
  answer=$(grep "busy with $busy and" <<<"$found")
  for call in create map 'set access' unmap release cuMemFreeAsync; do
    [[ $answer == *"$call does not"* ]] || wrong "$call waits for $busy, or cannot be told"
  done
  [[ $answer == *"cuMemFree waits"* ]] || wrong "cuMemFree does not wait for $busy"
done
says '"answer":"an event on it waits"'
says '"answer":"the legacy stream waits"'
each="$us to enqueue, $us until done \([1-9][0-9]*\)"
matches "without: $each; spinning: $each; blocking: $each\""
matches "\"spinning: $us \([1-9][0-9]*\); blocking: $us \([1-9][0-9]*\)\""
[[ $(grep -c '"otherwise":"memory may be handed out early"' <<<"$found") == 4 ]] ||
  wrong "the answers that fences count on are not 4"
matches "\"idle: $us \([1-9][0-9]*\); busy: $us \([1-9][0-9]*\)\""
code='[0-9]+( and breaks it \([0-9]+\))?'
matches "\"global: $code, by another thread $code; relaxed: 0, by another thread 0\""
says '"MIG off; NVML 1 TiB, free '
says "; of 256 MiB that are taken NVML sees 256 MiB, CUDA 256 MiB; the device's UUID is CUDA's\""
[[ $(grep -cE "\"not captured: $us \([1-9][0-9]*\); captured: $us \([1-9][0-9]*\)\"" <<<"$found") == 2 ]] ||
  wrong "the costs of two questions for captures are not there"
says '"answer":"cuStreamIsCapturing: 0, by another thread 0; cuStreamGetCaptureInfo: 0, by another thread 0"'
says '"answer":"900 and breaks it (901)"'
says '"answer":"there are none: 801"'

found=$(LD_LIBRARY_PATH=$2 WEIR_STANDIN_MIG=1 "$program" facts)
says '"MIG on; NVML 1 TiB, free '
says "CUDA 256 MiB; the device's UUID is another than CUDA's; part 0: 1 TiB, free "
matches "free [^;]*, its UUID is CUDA's\""

# A driver that runs one host function at a time, and one whose launches return at their end: every hold
# ends by its own clock, and a stream that is not busy any more says nothing of waits.
found=$(LD_LIBRARY_PATH=$2 WEIR_STANDIN_HOST_FUNCTIONS_SERIAL=1 "$program" facts)
[[ $(grep 'busy with a host function and' <<<"$found") == *'unmap does not'* ]] ||
  wrong 'unmap waits for a host function'
found=$(LD_LIBRARY_PATH=$2 WEIR_STANDIN_LAUNCHES_BLOCK=1 "$program" facts)
[[ $(grep 'busy with a kernel and' <<<"$found") == *'unmap cannot be told'* ]] ||
  wrong 'a stream that is not busy is said to be waited for, or not'
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
  if [[ $line == 'asked: waits for a stream that is busy with a kernel '* ]]; then break; fi
  before=$((before + 1))
done <"$scratch/asked"
kill -KILL "$job"
wait "$job" 2>/dev/null || true
found=$(<"$scratch/facts.json")
[[ $before -gt 10 ]] || wrong "only $before questions were told"
[[ $(grep -c '"answered":true' <<<"$found") -ge $before ]] || wrong "some of $before answers are lost"

# A driver without its management library: that question alone has no answer.
ln -s "$(realpath "$2")"/libcuda* "$scratch"
found=$(LD_LIBRARY_PATH=$scratch "$program" facts)
says '"answer":"not answered: there is no libnvidia-ml.so.1","answered":false'
[[ $(grep -c '"answered":false' <<<"$found") == 1 ]] || wrong "more than one is not answered"
exit "$failed"
