#!/usr/bin/env bash
# Checks `weir-gpu timeline` and tools/gpu_check/timeline_cost under root $2 on the stand-in in folder $1
# (build/dev/rehearsal), which has no CUPTI: all work is launched and timed, and nothing of it is recorded.
set -euo pipefail
root=$2
program=$1/weir-gpu
export WEIR_CUPTI=/no/such LD_LIBRARY_PATH=$1/machine
for folder in "$1"/site-packages/nvidia/*/lib; do  # cuBLAS
  LD_LIBRARY_PATH+=:$folder
done
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0

wrong() { echo "timeline: wrong: $1" && failed=1; }
# Runs "$2"..., which must exit with 2 and say one line with $1.
refuses() {
  local says=$1 status=0 said
  shift
  said=$("$@" 2>&1 </dev/null) || status=$?
  [[ $status == 2 && $said == *"$says"* && $said != *$'\n'* ]] || wrong "'$*' exits $status and says: $said"
}

"$program" timeline "$scratch/run.pftrace" --small >"$scratch/found.json" || wrong "it ends with $?"
python3 - "$scratch/found.json" <<'END' || wrong "see above"
import json, sys
found = json.load(open(sys.argv[1]))
assert "/no/such" in found["no_cupti"] and found["refused"] == "", found
assert found["complete"] and found["lost"] == 0 and found["strays"] == 0, found
stretches = {one["name"]: one for one in found["stretches"]}
assert len(stretches) == len(found["stretches"]) == 20, len(stretches)
for name in ("short kernel", "long kernel", "fill", "scale", "axpy", "graph of kernels", "copy to the device",
             "copy from the device", "copy on the device", "empty kernel"):
    one, first = stretches[name], stretches[name + ", the first"]
    assert one["operations"] > first["operations"] > 0, one
    assert one["timed"] == (name not in ("empty kernel", "fill")) and not first["timed"], one
    assert one["event_ms"] > 0 and one["recorded"] == 0, one
# A kernel that takes time takes that much by the events around it, in a graph too.
assert stretches["short kernel"]["event_ms"] >= 0.2 * stretches["short kernel"]["operations"], stretches
assert stretches["graph of kernels"]["event_ms"] >= 0.2 * stretches["graph of kernels"]["operations"], stretches
END
[[ $("$program" timeline count "$scratch/run.pftrace" | tr -d ' \n') == \
  '{"kernels":0,"copies":0,"lost":0,"complete":true}' ]] || wrong "count counts the file"

refuses 'timeline takes FILE' "$program" timeline
refuses 'timeline takes FILE' "$program" timeline --small
refuses 'timeline takes FILE' "$program" timeline count
refuses 'timeline takes FILE' "$program" timeline "$scratch/a.json" nonsense
refuses 'run.txt' "$program" timeline "$scratch/run.txt" --small
refuses 'none.json' "$program" timeline count "$scratch/none.json"

# What a recording costs: pairs of runs, and why there is nothing of the device in them.
cost=$root/tools/gpu_check/timeline_cost
"$cost" "$program" "$scratch/cost" 2 --inputs drawn --batches 3 --batch-size 8 >"$scratch/cost.json" 2>"$scratch/log" ||
  { cat "$scratch/log" && wrong "the cost ends with an error"; }
python3 - "$scratch/cost.json" <<'END' || wrong "see above"
import json, sys
found = json.load(open(sys.argv[1]))
assert "CUPTI" in found["why"] and "was not found" in found["why"], found
assert len(found["pairs"]) == 2, found
for pair in found["pairs"]:
    assert pair["plain"] > 0 and pair["recorded"] > 0 and pair["kernels"] == 0 and pair["lost"] == 0, pair
END
[[ ! -e $scratch/cost/recorded.pftrace ]] || wrong "the timelines of the pairs are not kept"
status=0
"$cost" "$program" "$scratch/cost" 2 --batches 0 >"$scratch/cost.json" 2>/dev/null || status=$?
[[ $status != 0 ]] || wrong "a run that fails is an error"
refuses 'usage: ' "$cost" "$program" "$scratch/cost" none
exit "$failed"
