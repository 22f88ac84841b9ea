#!/usr/bin/env bash
# Tests bench/run on the build in folder $1: what it lists, refuses, runs and writes.
set -euo pipefail
run=$(dirname "${BASH_SOURCE[0]}")/run
export WEIR_BENCH_BUILD=$1
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
for topic in admission checkpoint handover log optimizer peers policy pool sparse sparse-data staging submit swap-in fragmentation oom timelines swap-in-pools faq feeding; do
  grep -qx "$topic" <<<"$listed" || wrong "--list names $topic"
done
grep -qx gpu <<<"$listed" && wrong "--list names no topic that weir-bench does not have"
"$run" --help | grep -q '^usage: ' || wrong "--help prints the usage"
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

for topic in checkpoint swap-in; do
  [[ $topic != swap-in || -e $1/tools/preload/libweir.so ]] || continue
  table=$("$run" --quick "$topic") || wrong "$topic is measured"
  fits "$topic" "$table"
  grep -Eq "^$topic/[^ ]+ +[0-9.]+" <<<"$table" || wrong "$topic has figures"
done

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
table=$("$run" --quick faq) || wrong "the answers of docs/faq.md are measured"
fits faq "$table"
table=$(sed -E ':join; N; $!b join; s/\n {34}/ /g' <<<"$table")  # figures that go on in the next line
mapfile -t questions < <(sed -n 's/^## \(.*?\)$/\1/p' "${run%/*}/../docs/faq.md")
((${#questions[@]} == 9)) || wrong "docs/faq.md has nine questions, not ${#questions[@]}"
for number in "${!questions[@]}"; do
  question="$((number + 1)) ${questions[number]}"
  grep -A 2 -Fx "$question" <<<"$table" | grep -Eq '^  .* +.*[0-9]' ||
    wrong "faq has figures for '$question'"
done
grep -Eq '^  throttled +[0-9.]+ us to submit a batch, held back for [0-9.]+ [mu]s; [0-9]+ batches/s; finished, ' <<<"$table" ||
  wrong "faq has the time of the host and the rate"
grep -Eq '^  2 threads, 2 streams +[0-9]+ operations: 0 late .*, 0 lost; 1 result of 4 runs$' <<<"$table" ||
  wrong "a tensor's order is kept"
grep -Eq '^  reader of 3 ms, barrier +[0-9.]+ ms a batch; device idle [0-9.]+%: ' <<<"$table" ||
  wrong "faq has the cost of a barrier and the idle time"
grep -Eq '^  product, 1 MiB +1 queued: [0-9.]+ ms; 4 queued: .*; 64 queued: [0-9.]+ ms$' <<<"$table" ||
  wrong "faq has the time of an operation by the batches queued"
grep -Eq '^  of 16, throttled, 64MiB +finished, [0-9]+ batch' <<<"$table" || wrong "faq runs small batches in a budget"
grep -Eq '^  large copies +device idle .*; compute busy [0-9.]+%, copies [0-9.]+%$' <<<"$table" ||
  wrong "faq has the streams of a device that waits for copies"
grep -Eq '^  fp16, batches of 1 +loss .*; 1 step skipped, scale 32768$' <<<"$table" ||
  wrong "a step that overflows is skipped, and halves the scale"
grep -Eq '^  a network on two devices +[0-9.]+ KiB copied .* back; loss ([0-9.]+), on one device \1$' <<<"$table" ||
  wrong "a network on two devices copies what it counts, and learns the same"
grep -Eq '^  its timeline +peak reserved [0-9.]+ MiB; largest holder ' <<<"$table" || wrong "faq has the memory of a run"
status=0
"$1/bench/faq/weir-faq" run --copy -1 >"$scratch/out" 2>"$scratch/err" || status=$?
((status == 2)) || wrong "weir-faq exits 2 for a bad time, not $status"
grep -q "^weir-faq: --copy='-1'.*from 0 to" "$scratch/err" || wrong "the line says what is allowed"
status=0
python3 -B "${run%/*}/faq/faq.py" "$scratch" >"$scratch/out" 2>"$scratch/err" || status=$?
((status == 1)) || wrong "a folder without programs exits 1, not $status"
[[ $(wc -l <"$scratch/err") == 1 ]] || wrong "a folder without programs gets one line"
table=$("$run" --quick feeding) || wrong "slow and fast readers are measured"
fits feeding "$table"
for speed in "half as fast" "as fast" "twice as fast"; do
  grep -Eq "^$speed +[0-9.]+x +1.10x +(met|MISSED)( +[0-9.]+){6}$" \
    <<<"$table" || wrong "feeding has a row for readers $speed"
done
status=0
"$run" --quick --upstream nonsense oom >"$scratch/out" 2>"$scratch/err" || status=$?
((status == 2)) || wrong "an unknown upstream exits 2, not $status"
grep -q "'nonsense'.*simulated" "$scratch/err" || wrong "the line says which there are"
exit "$failed"
