#!/usr/bin/env bash
# Checks the commands of weir-gpu ($2) that need no GPU, and what tools/gpu-check under root $1
# refuses.
set -euo pipefail
root=$1
program=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0

# Says that $1 does not hold.
wrong() {
  echo "gpu-check: wrong: $1"
  failed=1
}

# Runs "$3"..., which must exit with $1, print nothing and say one line with $2 on standard error.
refuses() {
  local expected=$1 says=$2 status=0
  shift 2
  "$@" >"$scratch/out" 2>"$scratch/err" </dev/null || status=$?
  ((status == expected)) || wrong "'$*' exits $expected, not $status"
  [[ $(wc -l <"$scratch/err") == 1 && ! -s $scratch/out ]] || wrong "'$*' gets one line"
  grep -q -- "$says" "$scratch/err" || wrong "'$*' says '$says', not: $(cat "$scratch/err")"
}

check=$root/tools/gpu-check
# --build asks for nothing but a toolkit that tools/setup did not install here.
lacking=$(python3 -B -c '
import importlib.machinery, importlib.util, sys
loader = importlib.machinery.SourceFileLoader("gpu_check_command", sys.argv[1])
command = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
loader.exec_module(command)
print(*set(command.missing_to_build(None)) - {"nvcc"})' "$check")
[[ -z $lacking ]] || wrong "gpu-check --build asks for $lacking"
grep -q '^  train ' <<<"$("$program" --help)" || wrong "weir-gpu --help names the commands put into it"
refuses 2 'a command is needed' "$program"
refuses 2 "'nonsense' is not a command" "$program" nonsense
refuses 2 "what is 'nonsense'" "$program" test nonsense
grep -q 'weir-gpu train' <<<"$("$program" train run --help)" || wrong "a program in it has its own help"

report=$root/tools/gpu_check/report.py
grep -q 'report.py CALL... OUTPUT-FOLDER' <<<"$("$report" --help)" || wrong "report.py --help prints the usage"
# A call, whose page must not take the place of what is read; nor may a page be lost.
echo '{"date": "2000-01-01", "steps": [{"name": "bench", "exit_code": 0, "seconds": 3, "limit_seconds": 40}], "machine":
  {"gpus": [{"name": "A", "memory_bytes": 1, "compute_capability": "0", "multiprocessors": 1}]}}' >"$scratch/call.json"
status=0
"$report" "$scratch" "$scratch/pages" 2000-01-01 >"$scratch/out" || status=$?
((status == 1)) || wrong "a page with what is not met exits 1, not $status"
[[ $(tail -n 1 "$scratch/out") == "$scratch/pages/gpu-a-2000-01-01.md" ]] || wrong "its last line names the page"
made=$scratch/pages/gpu-a-2000-01-01.json
refuses 1 'is read and would be replaced' "$report" "$made" "$scratch/pages" 2000-01-01
rm "$made" && mkdir "$made"
refuses 1 'Is a directory' "$report" "$scratch" "$scratch/pages" 2000-01-01
status=0
"$report" "$scratch" "$scratch/closed" 2000-01-01 2>"$scratch/err" >&- || status=$?
[[ $status == 1 && $(wc -l <"$scratch/err") == 1 ]] || wrong "without standard output it fails in one line"

# GoogleTest takes a filter that selects nothing for success.
status=0
"$program" test --gtest_filter=No.Such >/dev/null 2>"$scratch/err" || status=$?
((status == 2)) || wrong "a filter that selects no test exits 2, not $status"
grep -q 'no test ran' "$scratch/err" || wrong "and says so"

grep -q '^usage: ' <<<"$("$check" --help)" || wrong "--help prints the usage"
refuses 2 'needs a number' "$check" --limit soon
refuses 2 'expected one argument' "$check" --output
refuses 2 'needs a folder' "$check" --output ''
touch "$scratch/file"
for folder in "$scratch/file" "$scratch/file/below" /proc/nonsense; do
  WEIR_GPU_PROGRAM=$program refuses 2 "gpu-check: --output: cannot write into $folder" "$check" --output "$folder"
done
refuses 2 "there is no step 'nonsense'" "$check" --steps bench,nonsense
refuses 2 "there is no step ''" "$check" --steps ''
refuses 2 'expected one argument' "$check" --programs
refuses 2 "there is no program 'nosuch', only first, second, plug, torch_resnet" "$check" --programs torch_gpt,nosuch
for names in ../../x 'torch gpt' A $'a\nb'; do
  refuses 2 'needs first, second, plug or names of programs' "$check" --programs "$names"
done
refuses 2 'bin/nvcc' "$check" --build --toolkit "$scratch"
mkdir -p "$scratch/toolkit/bin"
printf '#!/bin/sh\necho "release %s, V"\n' 13.0 >"$scratch/toolkit/bin/nvcc"
chmod +x "$scratch/toolkit/bin/nvcc"
refuses 2 'no toolkit of 12.x' "$check" --build --toolkit "$scratch/toolkit"
sed -i s/13.0/12.4/ "$scratch/toolkit/bin/nvcc"
refuses 2 "needs a version whose headers tools/torch/headers fetched, not '9.9'" "$check" --build --torch 9.9
refuses 2 'needs a version whose headers' "$check" --torch ../..
refuses 2 'is for --build' "$check" --toolkit "$scratch/toolkit"
status=0
"$check" --nonsense >"$scratch/out" 2>&1 || status=$?
((status == 2)) || wrong "an unknown flag exits 2, not $status"

# What the parts of a call are sure of must fit into it, as must the runs of its programs.
"$check" --dry-run >"$scratch/out" || wrong "each call fits into eight minutes: $(cat "$scratch/out")"
[[ $(grep -c '^tools/gpu-check' "$scratch/out") == 4 ]] || wrong "four calls are added up"
[[ $(awk '/together .* of 470$/ { print ($2 <= 470) }' "$scratch/out" | sort -u) == 1 ]] ||
  wrong "each has its sum"
status=0
"$check" --limit 400 --dry-run >/dev/null 2>"$scratch/err" || status=$?
((status == 1)) || wrong "a call that is too short exits 1, not $status"
grep -q 'more than a call has' "$scratch/err" || wrong "and says so"

# Where there is a GPU, it is hidden.
refuses 2 'takes nothing' "$program" facts nonsense
export WEIR_GPU_RUN=$scratch/run CUDA_VISIBLE_DEVICES=
refuses 2 'no GPU: ' "$program" info
refuses 2 'no GPU: ' "$program" facts
refuses 2 '^tools/gpu-check: no GPU: ' env WEIR_GPU_PROGRAM="$program" "$check"
refuses 2 'No such file' env WEIR_GPU_PROGRAM="$scratch/none" "$check"
exit "$failed"
