#!/usr/bin/env bash
# Checks tools/gpu-check under root $1 from its first step to the page, with a program in weir-gpu's
# place that makes its figures up, and weir-gpu ($2) for the report alone. Nothing of it is kept.
set -euo pipefail
root=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export WEIR_BUDGET=1GiB  # a setting that must not reach what is measured
export REPORTER=$2 WEIR_GPU_RUN=$scratch/run WEIR_GPU_PROGRAM=$scratch/made-up
failed=0

# Says that $1 does not hold.
wrong() {
  echo "gpu-check: wrong: $1"
  failed=1
}

cat >"$WEIR_GPU_PROGRAM" <<'END'
#!/usr/bin/env bash
# Stands in for weir-gpu. MISBEHAVE names a command that hangs, or one that crashes.
set -euo pipefail
[[ -z ${WEIR_BUDGET:-} ]] || exit 9
command=$1
shift
case ${MISBEHAVE:-} in
  "$command-hangs") sleep 1000 ;;
  "$command-crashes") kill -SEGV $$ ;;
esac
file=
for word; do
  [[ ${previous:-} != --json ]] || file=$word
  [[ $word != --gtest_output=json:* ]] || file=${word#--gtest_output=json:}
  previous=$word
done
policy() {
  printf '{"policy": "%s", "runs": 1, "batches_per_second": 1, "ratio_to_reference": %s,
    "ratio_low": 1, "ratio_high": 1, "idle_share": 0,
    "last_run": {"peak_reserved_bytes": 1, "outcome": "%s"}}' "$@"
}
case $command in
  info)
    echo '{
  "commit": "made-up",
  "gpus": [{"name": "Made-up GPU", "memory_bytes": 1, "compute_capability": "0", "multiprocessors": 1}]
}'
    ;;
  test)
    [[ -n $file ]] || exit 0
    echo '{"testsuites": [{"name": "A", "testsuite": [{"name": "B", "result": "COMPLETED"}]}]}' >"$file"
    ;;
  train)
    {
      echo '{"settings": "made up", "weights_identical": true, "finished_runs": 4, "reference":'
      policy reference 1 finished
      echo ', "policies": ['
      policy unbounded 0 "out of memory in batch 1" && echo ,
      policy backstop 1 finished && echo ,
      policy throttled 1 finished && echo ,
      policy barrier 0.5 finished
      echo ']}'
    } >"$file"
    ;;
  facts)
    echo '{"facts": [{"fact": "made up", "expected": "1", "answer": "1", "answered": true}]}'
    ;;
  bench)
    [[ $* == --json ]]
    echo '{"kernels": [{"name": "made up", "shape": "1", "floor_of": "copy", "median_us": 2, "floor_us": 1}]}'
    echo 'not for the file' >&2
    ;;
  report) exec "$REPORTER" report "$@" ;;
esac
END
chmod +x "$WEIR_GPU_PROGRAM"

# Runs tools/gpu-check with "$2"..., which must exit with $1; its verdicts are in $scratch/out.
runs() {
  local expected=$1 status=0
  shift
  rm -rf "$scratch/pages"
  (cd "$scratch" && "$root/tools/gpu-check" --output pages "$@" >out 2>err) || status=$?
  ((status == expected)) || wrong "'$*' with ${MISBEHAVE:-everything well} exits $expected, not $status"
}

# What must be in the verdicts.
says() { grep -q -- "$1" "$scratch/out" || wrong "the verdicts say: $1"; }

# A sanitizer is whatever the machine has: here one that is made up, and then none.
mkdir "$scratch/bin"
cat >"$scratch/bin/compute-sanitizer" <<'END'
#!/usr/bin/env bash
echo '========= ERROR SUMMARY: 0 errors'
END
chmod +x "$scratch/bin/compute-sanitizer"
before=$PATH
PATH=$scratch/bin:$PATH
runs 0
if grep -q '^NOT MET' "$scratch/out"; then wrong "a run with everything meets everything"; fi
says '^met  *every test labelled gpu passes: 1 passed'
says '^met  *compute-sanitizer racecheck is clean'
page=$(find "$scratch/pages" -name 'gpu-made-up-gpu-20??-??-??.md')
[[ -n $page && -s ${page%.md}.json ]] || wrong "a page and its JSON are named after device and date"
grep -q -- '--inputs ring --width-factor 16 ' "$page" || wrong "the page has the command lines"
[[ $(grep -c '^== .*: ok' "$scratch/err") == 9 ]] || wrong "each of the nine steps is shown as ok"
says '^left out  *every trace completes on the device: there is no weir beside made-up'
says '^met  *what only a GPU can tell is answered: made up: 1'
says '^left out  *PyTorch, transformer: the same losses.*: there is no weir beside made-up'
PATH=$before

# The programs alone, for which weir and its library have to be beside weir-gpu.
touch "$scratch/weir" "$scratch/libweir.so"
export WEIR_GPU_PYTHON=$scratch/no-such-python
runs 0 --programs
says '^left out  *JAX.*: there is no .*no-such-python'
export WEIR_GPU_PYTHON=$scratch/made-up-python
cat >"$WEIR_GPU_PYTHON" <<'END'
#!/usr/bin/env bash
set -euo pipefail
[[ $* == *programs/run_all.py\ --weir\ */weir\ --library\ */libweir.so\ * && $* == *' --only torch_gpt' ]]
while [[ $1 != --output ]]; do shift; done
echo '{"programs": [{"name": "torch_gpt", "runs": [], "left_out": "made up"}]}' >"$2"
END
chmod +x "$WEIR_GPU_PYTHON"
runs 1 --programs torch_gpt
says '^left out  *PyTorch, transformer: the same losses.*: made up'
says '^NOT MET  *PyTorch, prefetching: .*: not run; the step ok'
says '^left out  *every test labelled gpu passes: no step of this name was run'
[[ -n $(find "$scratch/pages" -name 'gpu-made-up-gpu-20??-??-??-programs.md') ]] ||
  wrong "a page of the programs alone has a name of its own"
rm "$scratch/weir" "$scratch/libweir.so"

export MISBEHAVE=bench-crashes
runs 1
says '^NOT MET .* over its floor .*: failed (exit 139)'
says '^met .*16 times the width, inputs from a ring .*bit-identical'

# The steps after it find no time left, which is not the same as being left out.
export MISBEHAVE=test-hangs
runs 1 --limit 2
says '^NOT MET .*gpu passes: stopped at its limit of [0-2] s'
says '^NOT MET .*above the barrier: stopped at its limit of 0 s'
if grep -q '^met' "$scratch/out"; then wrong "what did not run meets nothing"; fi
exit "$failed"
