#!/usr/bin/env bash
# Runs what the program $1 has for a GPU in the program $2, which has the same suites on the stand-in,
# with a driver as strict as a real one may be below compute-sanitizer: a launch returns when its
# stream has run it, host functions run one at a time, and reserved addresses without a page pass for
# device memory. Left out is what tools/gpu-check leaves out there: suites that hold a stream.
set -euo pipefail

tests=$("$1" --gtest_list_tests --gtest_filter='-*WhileHeld.*' |
  awk '/^[^ ]/ { suite = $1 } /^ / { printf "%s%s:", suite, $1 }')
if [[ -z $tests ]]; then
  echo "strict.sh: $1 has no tests for a GPU" >&2
  exit 1
fi
export WEIR_STANDIN_LAUNCHES_BLOCK=1 WEIR_STANDIN_HOST_FUNCTIONS_SERIAL=1
export WEIR_STANDIN_RESERVED_IS_DEVICE=1
exec "$2" --gtest_filter="$tests"
