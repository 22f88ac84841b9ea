#!/usr/bin/env bash
# Tests the benchmarks of the build in folder $2. With `every` as $1 each runs once; with `run`, bench/run: what it
# lists, refuses, runs and writes.
set -euo pipefail
what=$1
build=$2
run=$(dirname "${BASH_SOURCE[0]}")/run
export WEIR_BENCH_BUILD=$build
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0

# Fails if a line of table $2 is wider than 100 columns; $1 is its name. Command lines stay whole.
fits() {
  if awk 'length > 100 && !/^[0-9] weir/ && !/^JSON/' <<<"$2" | grep .; then
    wrong "a line of $1 is wider than 100 columns"
  fi
}

# Reports a failed check.
wrong() {
  echo "bench/run: wrong: $1"
  failed=1
}

listed=$("$run" --list)

if [[ $what == every ]]; then
  # But for those that bench/run runs below, and those of ten thousand blocks or streams and more, of which each
  # also runs with fewer.
  others='^admission/|(live|cached|unpassed|one_bin|gone|known|turn|ended):[0-9]*0000'
  table=$("$build/bench/weir-bench" --benchmark_min_time=0.0001 "--benchmark_filter=-$others") ||
    wrong "the benchmarks run"
  fits weir-bench "$table"
  for topic in $listed; do
    case $topic in
      admission | fragmentation | oom | timelines | swap-in-pools) continue ;;  # below, and tables of other programs
      swap-in) [[ -e $build/tools/preload/libweir.so ]] || continue ;;
    esac
    grep -Eq "^$topic/[^ ]+ +[0-9.]+" <<<"$table" || wrong "$topic has figures"
  done
  exit "$failed"
fi

for topic in admission checkpoint handover log optimizer peers pool staging submit swap-in fragmentation oom timelines swap-in-pools; do
  grep -qx "$topic" <<<"$listed" || wrong "--list names $topic"
done
grep -qx gpu <<<"$listed" && wrong "--list names no topic that weir-bench does not have"
grep -q '^usage: ' <<<"$("$run" --help)" || wrong "--help prints the usage"
if "$run" --help | awk 'length > 80' | grep .; then wrong "a line of --help is wider than 80 columns"; fi

status=0
"$run" nonsense >"$scratch/out" 2>"$scratch/err" || status=$?
((status == 2)) || wrong "an unknown name exits 2, not $status"
[[ $(wc -l <"$scratch/err") == 1 && ! -s $scratch/out ]] || wrong "an unknown name gets one line"
grep -q "'nonsense'.*pool" "$scratch/err" || wrong "the line says what is known"

status=0
"$run" --json "$scratch/none/file" admission >/dev/null 2>&1 || status=$?
((status == 2)) || wrong "a folder that is not there exits 2, not $status"

table=$("$run" --quick --json "$scratch/figures.json" admission)
grep -Eq '^admission/uncontended +[0-9.]+ +(ns|us|ms) .* 200 ns +(met|MISSED)' <<<"$table" ||
  wrong "the table has the figure, its target and the verdict"
fits admission "$table"
grep -q '^  figure: ' <<<"$table" || wrong "the table has a legend"
grep -q '^pool/' <<<"$table" && wrong "only what is named is run"
grep -q '"name": "admission/uncontended' "$scratch/figures.json" || wrong "the JSON has the figure"

table=$("$run" --quick fragmentation)
grep -Eq '^against paged +[0-9.]+ +[0-9.]+' <<<"$table" || wrong "fragmentation has a row for a pattern"
fits fragmentation "$table"
grep -q '^JSON' <<<"$table" && wrong "a table of its own has no JSON"
table=$("$run" --quick oom) || wrong "every failure is clean"
fits oom "$table"
grep -Eq '^comb +[x+]{5} +[x+]{5} ' <<<"$table" || wrong "oom marks each percentage"
grep -Eq '^throttled +[0-9.]+ +200 .*finished' <<<"$table" || wrong "run-ahead finishes under a policy"
table=$("$run" --quick timelines) || wrong "what timelines cost is measured"
fits timelines "$table"
grep -Eq '^1e5 events, .pftrace: bytes an event +[0-9.]+ +<= 30 +met$' <<<"$table" ||
  wrong "timelines has a row for the size of an event"
grep -Eq '^weir-train, .*x +>= 0.98 +(met|MISSED)$' <<<"$table" ||
  wrong "timelines compares runs that are recorded with runs that are not"
table=$("$run" --quick swap-in-pools) || wrong "which pool is right for which requests is measured"
fits swap-in-pools "$table"
grep -Eq '^2,000 at random +[0-9.]+, [0-9.]+x +[0-9.]+, [0-9.]+x' <<<"$table" ||
  wrong "swap-in-pools has the memory and the time of each pool"
grep -Eq '^2,000 at random +2000 +[0-9]+ .*[0-9]p$' <<<"$table" ||
  wrong "swap-in-pools has a row for tensors at random, and the pages that paged maps"
status=0
"$run" --quick --upstream nonsense oom >"$scratch/out" 2>"$scratch/err" || status=$?
((status == 2)) || wrong "an unknown upstream exits 2, not $status"
grep -q "'nonsense'.*simulated" "$scratch/err" || wrong "the line says which there are"
exit "$failed"
