#!/usr/bin/env bash
# Checks tools/gpu-check under root $1 from its first step to the page, with a program in weir-gpu's
# place that makes its figures up. Nothing of it is kept.
set -euo pipefail
root=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# Settings that must not reach what is measured.
export WEIR_BUDGET=1GiB NVIDIA_TF32_OVERRIDE=1 CUBLAS_EMULATE_SINGLE_PRECISION=1
export WEIR_GPU_RUN=$scratch/run WEIR_GPU_PROGRAM=$scratch/made-up
export GPU_CHECK=$root/tools/gpu_check
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
case $command in
  info) ;;
  *) [[ -z ${NVIDIA_TF32_OVERRIDE:-}${CUBLAS_EMULATE_SINGLE_PRECISION:-} ]] || exit 9 ;;
esac
# Where cuBLAS and CUPTI are, of which info speaks and all others may need them.
[[ :$LD_LIBRARY_PATH: == :/made/up:*${SITE:+:$SITE/nvidia/cu13/lib:$SITE/nvidia/cuda_cupti/lib:}* ]] || exit 9
case ${MISBEHAVE:-} in
  "$command-hangs") sleep 1000 ;;
  "$command-waits")  # until it is ended, which is seen by the end of this pipe
    exec 9>"$RUNNING"
    echo $$ >&9
    sleep 1000
    ;;
  steps-hang) [[ $command == info ]] || { trap '' TERM && sleep 1000; } ;;
  "$command-crashes") kill -SEGV $$ ;;
  "$command-babbles") echo babble && exit ;;
esac
file=
for word; do
  [[ ${previous:-} != --json ]] || file=$word
  [[ $word != --gtest_output=json:* ]] || file=${word#--gtest_output=json:}
  previous=$word
done
policy() {
  printf '{"policy": "%s", "runs": 1, "batches_per_second": 1, "ratio_to_reference": %s,
    "ratio_low": 1, "ratio_high": 1, "idle_share": 0, "host_us": 1,
    "to_plain": {"ratio": 1, "low": 1, "high": 1},
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
    if [[ $1 == wide ]]; then
      echo '{"settings": {"device": {"value": "made up", "source": "--device"}}, "result": {"outcome": "finished", "batches": 500, "seconds": 0.4,
        "batches_per_second": 1250, "idle_share": 0, "staging_bytes": 1, "peak_reserved_bytes": 1,
        "copied_to_device": {"bytes": 1}, "test_accuracy": 1, "throttle_caused_idle": {"share": 0},
        "staging_bytes_per_batch": [1, 1]}}'
      exit
    fi
    if [[ $1 == run ]]; then
      echo '  "batches_per_second": 100.5,' >"$file"
      exit
    fi
    {
      echo '{"settings": {"device": {"value": "made up", "source": "--device"}}, "weights_identical": true, "finished_runs": 4, "reference":'
      policy reference 1 finished
      echo ', "plain":'
      policy plain 1 finished
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
  timeline)
    if [[ $1 == count ]]; then
      printf '{\n "kernels": 7,\n "lost": 0\n}\n'
      exit
    fi
    stretch='"name": "made up", "operations": 3, "recorded": 3, "joined": 3, "timed": true, "in_order": true'
    echo '{"lost": 0, "strays": 0, "complete": true, "stretches": [{'"$stretch"',
      "event_ms": 1, "sum_ms": 1, "span_ms": 1, "outside_us": 0}]}'
    ;;
  bench)
    [[ $* == "--json -" ]]
    figures='"floor_of": "copy", "median_us": 110, "floor_us": 100}'
    echo '{"kernels": ['
    # Each kernel that has a bound by name has to be there.
    (cd "$GPU_CHECK" && python3 -B -c 'from report import NAMED_BOUNDS
for kernel in NAMED_BOUNDS: print("""{"name": "%s", "shape": "%s", '"$figures"',""" % kernel)')
    echo '{"name": "made up", "shape": "1", '"$figures"']}'
    echo 'not for the file' >&2
    ;;
esac
END
chmod +x "$WEIR_GPU_PROGRAM"

# A Python in whose packages cuBLAS and CUPTI are, and a folder that somebody names anyhow.
export SITE=$scratch/site LD_LIBRARY_PATH=/made/up PYTHONPATH=$scratch/site
mkdir -p "$SITE"/nvidia/{cu13,cuda_cupti,other}/lib
touch "$SITE/nvidia/cu13/lib/libcublas.so.13" "$SITE/nvidia/cuda_cupti/lib/libcupti.so.12" \
  "$SITE/nvidia/other/lib/libother.so.1"
# Frameworks, whose import notes what it found.
for framework in torch cupy jax; do
  cat >"$SITE/$framework.py" <<END
import os
with open("$scratch/imported", "a") as out:
    out.write("$framework " + repr(os.environ.get("CUDA_VISIBLE_DEVICES")) + "\\n")
END
done

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
grep -q "^torch ''$" "$scratch/imported" || wrong "frameworks are read beside the tests, without a GPU"
page=$(find "$scratch/pages" -name 'gpu-made-up-gpu-20??-??-??.md')
[[ -n $page && -s ${page%.md}.json ]] || wrong "a page and its JSON are named after device and date"
[[ $(tar -tzf "${page%.md}-logs.tar.gz") == *./memcheck.log* ]] || wrong "the logs are in one archive"
[[ $(find "$scratch/pages" -type f | wc -l) == 3 ]] || wrong "no more than that is to be brought back"
grep -q -- '--inputs ring --width-factor 16 ' "$page" || wrong "the page has the command lines"
grep -q -- '--tool memcheck --report-api-errors no ' "$page" || wrong "refused calls are no fault of memory"
[[ $(grep -c '^== .*: ok' "$scratch/err") == 13 ]] || wrong "each of the thirteen steps is shown as ok"
says '^met  *timeline: recorded kernels and copies equal those launched: 3 kernels'
says '^met  *timeline: a recording costs at most 3% .*: 1.000 (1.000 to 1.000) times as long in 4 pairs'
says '^left out  *timeline: nsys outside works, or a line says why not: there is no weir beside made-up'
says '^left out  *every trace completes on the device: there is no weir beside made-up'
says '^met  *what only a GPU can tell is answered, and as Weir counts on: 1 answer, none unexpected'
says '^left out  *PyTorch, transformer: the same losses.*: no step of this name was run'
PATH=$before

# A driver that is too old for the program, beside the one that is built with an older toolkit.
mkdir "$scratch-12"
cp "$WEIR_GPU_PROGRAM" "$scratch-12/"
runs 0 --steps bench
grep -qF "$scratch/made-up bench" "$scratch/run/steps.tsv" || wrong "the newer program is run where both can be"
sed -i '3i [[ $0 == *-12/* || $1 != info ]] || { echo "weir-gpu info: too old" >&2 && exit 2; }' "$WEIR_GPU_PROGRAM"
runs 0 --steps bench
grep -q -- "-12/made-up bench" "$scratch/run/steps.tsv" || wrong "the older program is run where the newer cannot be"
mv "$WEIR_GPU_PROGRAM" "$scratch/away"
runs 0 --steps bench
grep -q -- "-12/made-up bench" "$scratch/run/steps.tsv" || wrong "the older program is run where it is alone"
sed -i '3i [[ $1 != info ]] || { echo "weir-gpu info: no GPU" >&2 && exit 2; }' "$scratch-12/made-up"
runs 2 --steps bench
grep -qx 'tools/gpu-check: no GPU' "$scratch/err" || wrong "and it says why it cannot be"
mv "$scratch/away" "$WEIR_GPU_PROGRAM"
runs 2 --steps bench
grep -qx 'tools/gpu-check: too old' "$scratch/err" || wrong "of two that cannot be run, the newer says why"
rm -r "$scratch-12"
runs 2 --steps bench
grep -qx 'tools/gpu-check: too old' "$scratch/err" || wrong "and without it, why none can"
sed -i 3d "$WEIR_GPU_PROGRAM"

# A part that is run again has a page of its own.
runs 0 --steps bench,facts
[[ $(grep -c '^== .*: ok' "$scratch/err") == 2 ]] || wrong "only the steps that were asked for are run"
again=$(find "$scratch/pages" -name 'gpu-made-up-gpu-20??-??-??-steps-bench-facts.json')
[[ -n $again ]] || wrong "the page of some steps is named after them"

# The programs alone, for which weir and its library have to be beside weir-gpu.
runs 0 --programs first
says '^left out  *PyTorch, transformer: the same losses.*: there is no weir beside made-up'
touch "$scratch/weir" "$scratch/libweir.so"
export WEIR_GPU_PYTHON=$scratch/no-such-python
SITE='' runs 0 --programs first
says '^left out  *JAX.*: there is no .*no-such-python'
export WEIR_GPU_PYTHON=$scratch/made-up-python
cat >"$WEIR_GPU_PYTHON" <<'END'
#!/usr/bin/env bash
# Stands in for python3: for run_all.py, which gets the machine's own settings.
set -euo pipefail
[[ $* == *programs/run_all.py\ * ]] || exec python3 "$@"
[[ $LD_LIBRARY_PATH == /made/up && $NVIDIA_TF32_OVERRIDE == 1 ]]
[[ $* == *--weir\ */weir\ --library\ */libweir.so\ * && $* == *' --only torch_gpt' ]]
while [[ $1 != --output ]]; do shift; done
echo '{"planned": ["torch_gpt"], "programs": [{"name": "torch_gpt", "runs": [], "left_out": "made up"}]}' >"$2"
END
chmod +x "$WEIR_GPU_PYTHON"
rm "$scratch/imported"
runs 0 --programs torch_gpt
says '^left out  *PyTorch, transformer: the same losses.*: made up'
says '^left out  *PyTorch, prefetching: .*: not among the programs of this call'
says '^left out  *every test labelled gpu passes: no step of this name was run'
grep -q '^torch ' "$scratch/imported" || wrong "frameworks are read before the programs"
programs=$(find "$scratch/pages" -name 'gpu-made-up-gpu-20??-??-??-programs-torch_gpt.json')
[[ -n $programs ]] || wrong "a page of the programs alone has a name of its own"

# Both calls as one page: now all programs are asked for.
status=0
cp "$programs" "$scratch/programs.json"
runs 0 --steps facts
python3 -B "$GPU_CHECK/report.py" "$scratch/pages"/*.json "$scratch/programs.json" "$scratch/merged" 2000-01-01 \
  >"$scratch/out" || status=$?
((status == 1)) || wrong "the page of two calls is made, with what is not met on it"
says '^met  *what only a GPU can tell'
says '^NOT MET  *PyTorch, prefetching: .*: not run; the step ok'
rm "$scratch/weir" "$scratch/libweir.so"

export MISBEHAVE=bench-crashes
runs 1
says '^NOT MET .* over its floor .*: failed (exit 139)'
says '^met .*16 times the width, inputs from a ring .*bit-identical'

# A machine that answers late has three times the share of info: a call that ends there tells nothing.
cat >"$scratch/bin/timeout" <<END
#!/usr/bin/env bash
echo "\$*" >>"$scratch/timeouts"
exec $(type -P timeout) "\$@"
END
chmod +x "$scratch/bin/timeout"
MISBEHAVE='' PATH=$scratch/bin:$PATH runs 0 --steps facts
grep -q '^-k 5 75 .*/made-up info --json -' "$scratch/timeouts" || wrong "info has three times its share"
rm "$scratch/bin/timeout"
MISBEHAVE=info-hangs runs 2 --limit 2
grep -q 'made-up info took too long: stopped after [12] s$' "$scratch/err" || wrong "and it says so where it hangs"

# Where no page can be made of them, what the steps left comes back anyhow.
cat >"$scratch/bin/python3" <<END
#!/usr/bin/env bash
[[ \$MISBEHAVE != report-crashes || \$* != *report.py* ]] || kill -SEGV \$\$
exec $(type -P python3) "\$@"
END
chmod +x "$scratch/bin/python3"
for MISBEHAVE in report-crashes info-babbles; do
  status=0
  rm -rf "$scratch/pages"
  (cd "$scratch" && PATH=$scratch/bin:$PATH "$root/tools/gpu-check" --output pages --steps facts >out 2>err) || status=$?
  ((status != 0)) || wrong "a call without a page fails with $MISBEHAVE"
  [[ $(tar -tzf "$scratch/pages/gpu-logs-steps-facts.tar.gz") == *./facts.json* ]] ||
    wrong "the logs are kept with $MISBEHAVE"
  grep -q 'no page could be made; the logs are in .*/gpu-logs-steps-facts.tar.gz' "$scratch/err" ||
    wrong "and it is said where, with $MISBEHAVE"
done

# The steps after it find no time left, which is not the same as being left out.
export MISBEHAVE=test-hangs
runs 1 --limit 2
says '^NOT MET .*gpu passes: stopped at its limit of [0-2] s'
says '^NOT MET .*above the barrier: stopped at its limit of 0 s'
if grep -q '^met' "$scratch/out"; then wrong "what did not run meets nothing"; fi

# Nothing runs on after a call that lost its terminal. On a busy machine the call, and its timeout, may have
# done nothing yet since they began what it runs.
export RUNNING=$scratch/running MISBEHAVE=bench-waits
mkfifo "$RUNNING"
for _ in {1..6}; do timeout 60 bash -c 'while :; do :; done' & done
busy=$(jobs -p)
for _ in {1..6}; do
  (cd "$scratch" && exec "$root/tools/gpu-check" --output pages --steps bench >out 2>err) &
  exec 8<"$RUNNING"
  read -r waits <&8
  kill -HUP $!
  status=0
  wait $! || status=$?
  ((status == 130)) || wrong "a call that is hung up on exits 130, not $status"
  status=0
  read -r -t 60 _ <&8 || status=$?
  exec 8<&-
  if ((status != 1)); then
    wrong "a step ends with its call"
    kill -KILL -- "-$(ps -o pgid= -p "$waits" | tr -d ' ')"
    break
  fi
done
# shellcheck disable=SC2086  # several words
kill $busy

# Every step hangs, and none minds being told to end: the call ends by its limit all the same, but for
# what the last one that is stopped has left.
export MISBEHAVE=steps-hang
started=$SECONDS
runs 1 --limit 20
took=$((SECONDS - started))
((took >= 18 && took <= 28)) || wrong "a call of 20 s in which all hangs took $took s"
[[ $(grep -c 'stopped; ' "$scratch/err") == 11 ]] || wrong "every step is stopped"
exit "$failed"
