#!/usr/bin/env bash
# Runs the fuzzer $1 for $4 inputs from the corpus $2, with the dictionary $3 and a fixed seed. Fails where an input breaks a reader, and where the
# fuzzer did not do all of them.
set -euo pipefail
fuzzer=$1 corpus=$2 dictionary=$3 runs=$4
[[ -n $(ls "$corpus") ]]
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/found"
if ! "$fuzzer" "$work/found" "$corpus" "-dict=$dictionary" "-runs=$runs" -seed=1 \
  -max_len=8192 -timeout=20 -rss_limit_mb=2048 "-artifact_prefix=$(dirname "$fuzzer")/" \
  -print_final_stats=1 >"$work/log" 2>&1; then
  tail -n 60 "$work/log"
  exit 1
fi
grep -E '^stat::|^Done' "$work/log"
executed=$(sed -nE 's/^stat::number_of_executed_units: *([0-9]+)$/\1/p' "$work/log")
if ((${executed:-0} < runs)); then
  echo "only ${executed:-0} of $runs inputs were tried"
  exit 1
fi
