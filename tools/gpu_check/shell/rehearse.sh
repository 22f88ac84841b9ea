# Runs everything on the stand-in for a GPU (docs/standin.md): the same commands, with sizes for a
# CPU. For tools/gpu-check.
# shellcheck shell=bash disable=SC2034,SC2154

# The sizes for a GPU. A comparison is long enough that its start is a small part of it, and short
# enough that all pairs fit the limit. At 16 times the width each run reads back over a gigabyte of
# weights for comparison.
tests='*'
x1="--batches 2000 --no-search"
x16="--width-factor 16 --batches 40 --rounds 2 --no-search"
bench_flags=
wide="--batches 500 --readers 8"
traces='bench/traces/*.csv.gz'
trace_settings=()
timeline_flags=
cost_pairs=4
cost_flags="--inputs drawn --batches 3000"
program_flags=
# Tests that hold a stream while they launch: under compute-sanitizer a launch may wait for its
# stream. tests/support/held.hpp has the rule for their names.
held_tests='*WhileHeld.*'

# Makes this call a rehearsal of size $1, full or quick.
on_standin() {
  local machine=$PWD/build/dev/rehearsal/machine
  [[ -x $program && -d $machine ]] || fail "$program is not there; build it with: cmake --build --preset dev"
  export LD_LIBRARY_PATH=$machine PYTHONPATH=${machine%/*}/site-packages
  toolkit_libraries=  # a real cuBLAS cannot use the stand-in
  PATH=$PWD/tests/gpu_check/standin:$PATH  # compute-sanitizer
  export WEIR_STANDIN_MEMORY=64G
  tests='*-NcclOneRank.*'  # a real NCCL cannot use the stand-in
  # What takes most time on the stand-in.
  if [[ $1 == quick ]]; then
    tests+=:Gemm.*:SoftmaxCrossEntropy.*:Dense.*:SparseLosses.*:Elementwise.*
  fi
  x1="--small --batches 20 --rounds 1 --no-search"
  x16="--small --width-factor 2 --batches 10 --rounds 1 --no-search"
  bench_flags=--small
  wide="--scale 0.001 --batches 5 --test-batches 1"
  trace_settings=(env WEIR_STANDIN_ADDRESSES_ONLY=1)  # a replay touches no memory
  # The toolkit's CUPTI cannot use the stand-in, which has none of its own.
  export WEIR_CUPTI=/there-is-none-on-the-stand-in
  timeline_flags=--small
  cost_pairs=2
  cost_flags="--inputs drawn --batches 5 --batch-size 16"
  program_flags="--device cpu --small"
}

# Returns whether every step of the run in $1 finished and the three files are in $2. A page is
# always made, so this checks that it has all figures.
flow_worked() {
  local run=$1 output=$2 name status rest file files
  files=("$output"/rehearsal-*.md "$output"/rehearsal-*.json "$output"/rehearsal-*-logs.tar.gz)
  if ((${#files[@]} != 3)) || [[ $(find "$output" -type f | wc -l) != 3 ]]; then
    echo "rehearsal: there are not three files in $output" >&2
    return 1
  fi
  for file in "${files[@]}"; do
    [[ -s $file ]] || { echo "rehearsal: $file is not there" >&2 && return 1; }
  done
  if grep 'are not as expected' "${files[0]}" >&2; then return 1; fi
  while IFS=$'\t' read -r name status rest; do
    if [[ $status != 0 ]]; then
      echo "rehearsal: step $name did not work (${status}): $run/$name.log" >&2
      return 1
    fi
  done <"$run/steps.tsv"
}

# Runs the calls of the first half hour and makes their page, in build/rehearsal, of size $1.
# Reports whether the flow works. Conditions that only a GPU can meet are on the page and decide
# nothing.
rehearse() {
  local size=$1 folder=$PWD/build/rehearsal call status=0 number=0 pages=()
  rm -rf "$folder"
  for call in "" "--programs first" "--programs second" "--programs plug"; do
    number=$((number + 1))
    mkdir -p "$folder/output$number"
    # shellcheck disable=SC2086  # several words
    WEIR_GPU_RUN=$folder/run$number tools/gpu-check --on-standin "$size" $call \
      --output "$folder/output$number" --limit "$limit_s" >"$folder/call$number.log" || status=$?
    ((status <= 1)) || fail "the call 'tools/gpu-check $call' ended with $status: $folder/call$number.log"
    cat "$folder/call$number.log"
    flow_worked "$folder/run$number" "$folder/output$number" || return 1
    pages+=("$folder/output$number"/*.json)
  done
  status=0
  python3 -B tools/gpu_check/report.py "${pages[@]}" "$folder/output" "$(date -u +%F)" || status=$?
  ((status <= 1)) || return 1
  ls -l "$folder"/output*
  echo "rehearsal: every step ran and the page was made, in $SECONDS s: nothing of it is a GPU's"
}
