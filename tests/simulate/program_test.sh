#!/usr/bin/env bash
# Tests the program weir-simulate ($1): what it prints, draws and refuses. And that weir-simulate-real
# ($2) prints its summary, and records delays that weir-simulate reads. And weir-run-ahead ($3).
set -euo pipefail
simulate=$1
real=$2
run_ahead=$3
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0

# Reports a failed check.
wrong() {
  echo "weir-simulate: wrong: $1"
  failed=1
}

grep -q -- "--workload" <<<"$("$simulate" --help)" || wrong "--help names the flags"
grep -q '^steady-2ms ' <<<"$("$simulate" --list)" || wrong "--list names the workloads"

"$simulate" --batches 100 --workload bursts,retained --budget 1,4 >"$scratch/table"
(($(grep -c '^bursts .*throttled ' "$scratch/table") == 2)) || wrong "a row for each budget"
grep -q '^retained .*barrier ' "$scratch/table" || wrong "a row for each policy"
grep -q '^throttled misses a bound on ' "$scratch/table" || wrong "the bounds are summed up"

"$simulate" --batches 100 --workload steady-2ms --budget 4 --policy throttled,unbounded \
  --json "$scratch/a.json" --svg "$scratch/a.svg" >/dev/null
grep -q '"policy": "unbounded"' "$scratch/a.json" || wrong "--json has the rows"
grep -q '</svg>' "$scratch/a.svg" || wrong "--svg is complete"
"$simulate" --batches 300 --workload bursts --budget 16 --policy throttled \
  --svg "$scratch/t.svg" --svg-of target >/dev/null
grep -q 'run-ahead target (ms)' "$scratch/t.svg" || wrong "--svg-of target shows the target"
"$simulate" --batches 10 --workload bursts --budget 4 --json - | head -c 1 | grep -q '{' ||
  wrong "--json - prints JSON alone"

"$real" --workload steady-2ms --budget 4 --policy throttled --rounds 1 --record "$scratch/jitter" >"$scratch/printed"
sed -E ':join; N; $!b join; s/\n  ([^ ])/ \1/g' "$scratch/printed" >"$scratch/real"  # one line each
(($(awk 'length > 100' "$scratch/printed" "$scratch/table" | wc -l) == 0)) || wrong "tables fit 100 columns"
grep -q '^all workloads: rows within 3%: time [01] of 1 (worst .*), held [01] of 1 .*, peak [01] of 1 ' "$scratch/real" ||
  wrong "weir-simulate-real sums up its rows"
for delay in wake_up host submit copy device; do
  grep -q "^$delay [0-9]* [0-9]* [0-9]*$" "$scratch/jitter" || wrong "--record has delays of $delay"
done
"$simulate" --batches 10 --workload bursts --budget 4 --jitter "$scratch/jitter" >/dev/null ||
  wrong "--jitter reads what was recorded"

# --check: 0 where throttled keeps its bounds, 1 and which it misses where it does not.
"$simulate" --check --batches 2000 --workload steady-2ms --budget 4 >/dev/null ||
  wrong "--check accepts a row that keeps its bounds"
# The target has not fallen yet.
missed=(--check --batches 100 --workload steady-2ms --budget 16 --policy throttled)
status=0
"$simulate" "${missed[@]}" >"$scratch/out" || status=$?
((status == 1)) || wrong "--check exits with 1 if a bound is missed"
grep -q "^  steady-2ms at 16: memory, of two batches' .* > 1.2500$" "$scratch/out" || wrong "--check says which"
status=0
"$simulate" "${missed[@]}" --json - 2>"$scratch/err" >/dev/null || status=$?
((status == 1)) && grep -q '^  steady-2ms at 16: ' "$scratch/err" || wrong "--check says it beside JSON"

# Refused with one line and exit code 2.
refused() {
  local status=0
  "$simulate" "$@" >"$scratch/out" 2>"$scratch/err" || status=$?
  if ((status != 2)) || [[ -s $scratch/out || $(wc -l <"$scratch/err") != 1 ]]; then
    wrong "$* is refused with one line"
  fi
}
refused --workload nobody
refused --check --policy backstop
refused --policy throttled,nobody
refused --budget 0.5
refused --budget 1MiB
refused --batches 0
refused --batches 10000001
refused --seed -1
refused --jitter "$scratch/none"
refused --svg "$scratch/b.svg"
refused --svg "$scratch/b.svg" --workload bursts --budget 4
refused --svg "$scratch/b.svg" --svg-of time --workload bursts --budget 4 --policy throttled
for policies in throttled-2 unbounded throttled,unbounded; do
  refused --svg "$scratch/b.svg" --svg-of target --workload bursts --budget 4 --policy "$policies"
done
refused --svg "$scratch/b" --json "$scratch/b" --workload bursts --budget 4 --policy throttled
refused --json "$scratch/none/file"
refused --hand-over perhaps
refused --nonsense
printf 'wake_up 5 4 3\n' >"$scratch/bad"
refused --jitter "$scratch/bad"

grep -q '^alternating ' <<<"$("$run_ahead" --list)" || wrong "weir-run-ahead --list names the cases"
table=$("$run_ahead" --case steady --batches 20 --seeds 1)
grep -q '^steady  *1\.000 ' <<<"$table" || wrong "weir-run-ahead: equal batches lose nothing: $table"
for case in alternating-steady pipeline; do
  table=$("$run_ahead" --case "$case" --batches 20 --seeds 1 --real)
  grep -q '^mean speed ' <<<"$table" || wrong "weir-run-ahead --real sums up: $table"
done
for flags in "--case nobody" "--batches 2" "--seeds 0" "--first 1"; do
  # shellcheck disable=SC2086
  "$run_ahead" $flags 2>"$scratch/err" && wrong "weir-run-ahead takes $flags"
  (($(wc -l <"$scratch/err") == 1)) || wrong "weir-run-ahead $flags: one line: $(cat "$scratch/err")"
done
exit "$failed"
