#!/usr/bin/env bash
# Runs programs with and without a library of the borders over the fake inside, which writes each call
# of it to a file.
#
#   process_test.sh LIBRARY CASE PROGRAM [ARGUMENT...]
set -euo pipefail
library=$1 case=$2
shift 2

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export WEIR_FAKE_CALLS=$scratch/calls PYTHONDONTWRITEBYTECODE=1
touch "$WEIR_FAKE_CALLS"
# A tool or a library that is preloaded here already is not what is tested.
unset LD_PRELOAD NVTX_INJECTION64_PATH WEIR_BATCH_RANGE

# Fails unless the calls are the lines of standard input.
expect_calls() {
  diff -u --label expected --label calls - "$WEIR_FAKE_CALLS"
}

batches() {
  for ((i = 0; i < $1; ++i)); do printf 'begin step\nend\n'; done
}

case $case in
  wrappers)
    "$@" alone
    expect_calls </dev/null
    LD_PRELOAD=$library "$@" swapped-in
    # The stream of the allocation is an address of the program.
    sed -i -E 's/^(allocate .* stream) [0-9]+$/\1 S/' "$WEIR_FAKE_CALLS"
    for _ in 1 2; do
      printf '%s\n' 'begin train' end 'memory 3' 'trim -1' 'budget -1 21474836480' 'fraction 1 0.5' \
        'reset peaks 1' 'allocate 64 block on 1 stream S' 'use block on -1 stream 0' 'allow sharing' 'share block' \
        'free block on 1 stream 0' 'blocks 1' settings 'timeline ' 'timeline stop'
    done | expect_calls
    ;;
  nvtx)
    NVTX_INJECTION64_PATH=$library WEIR_BATCH_RANGE=step "$@" swapped-in
    # Six pushes, two ranges that overlap, two more.
    { batches 6; printf '%s\n' 'begin step' 'begin step' end end; batches 2; } | expect_calls
    ;;
  nvtx-preloaded)
    LD_PRELOAD=$library NVTX_INJECTION64_PATH=$library WEIR_BATCH_RANGE=other "$@" other
    expect_calls </dev/null
    ;;
  nvtx-unset)
    NVTX_INJECTION64_PATH=$library "$@" alone
    NVTX_INJECTION64_PATH=$library WEIR_BATCH_RANGE='' "$@" alone
    WEIR_BATCH_RANGE=step "$@" alone
    expect_calls </dev/null
    ;;
  torch)
    if readelf -d "$library" | grep -F libstdc++; then
      echo "$library has no C++ library of its own, so that nothing is shown" && exit 1
    fi
    WEIR_FAKE_REFUSES=1 "$@" "$library"
    for _ in 1 2 3; do printf '%s\n' 'allocate 4096 block on 0 stream 0' 'memory 0'; done | expect_calls
    ;;
  torch-recipe)
    LD_PRELOAD=$library "$@" 2>"$scratch/said"
    grep -F 'memory fraction of 0.5 for device 1' "$scratch/said"
    printf '%s\n' 'allocate 64 block on 1 stream 7' 'use block on -1 stream 8' \
      'free block on 1 stream 7' 'trim -1' | expect_calls
    ;;
  python)
    "$@" alone
    expect_calls </dev/null
    LD_PRELOAD=$library "$@" swapped-in
    : >"$WEIR_FAKE_CALLS"
    WEIR_FAKE_REFUSES=1 LD_PRELOAD=$library "$@" refused
    ;;
  shown)
    # An example of docs/c-api.md: alone it says so, swapped in it marks its three batches.
    [[ $("$@") == "Weir is not swapped in" ]]
    expect_calls </dev/null
    LD_PRELOAD=$library "$@" >"$scratch/output"
    diff -u --label expected --label output - "$scratch/output" <<<"123 of 640 bytes reserved"
    printf '%s\n' 'begin train' end 'begin train' end 'begin train' end 'memory 0' 'trim 0' |
      expect_calls
    ;;
  *)
    echo "process_test.sh: unknown case '$case'" >&2
    exit 2
    ;;
esac
