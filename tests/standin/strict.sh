#!/usr/bin/env bash
# Runs what the program $1 has for a GPU in the program $2, which has the same suites on the stand-in,
# with a driver as strict as a real one may be: host functions run one at a time, reserved addresses
# without a page pass for device memory, and, as below compute-sanitizer, a launch returns when its
# stream has run it. Suites that hold a stream are left out below compute-sanitizer, and so their
# launches return at once here too.
set -euo pipefail

# The tests of program $1 that the filter $2 lets through, as a filter.
tests_of() {
  "$1" --gtest_list_tests --gtest_filter="$2" |
    awk '/^[^ ]/ { suite = $1 } /^ / { printf "%s%s:", suite, $1 }'
}

# Fails unless the program $1 has every test that the filter $2 names: GoogleTest is content with
# a filter that matches none.
expect_tests() {
  local wanted found
  wanted=$(tr -cd : <<<"$2" | wc -c)
  found=$(tests_of "$1" "$2" | tr -cd : | wc -c)
  if [[ $found -eq $wanted ]]; then return; fi
  echo "strict.sh: $1 has $found of the $wanted tests that it is to run: $2" >&2
  exit 1
}

export WEIR_STANDIN_HOST_FUNCTIONS_SERIAL=1 WEIR_STANDIN_RESERVED_IS_DEVICE=1

others=$(tests_of "$1" '-*WhileHeld.*')
if [[ -z $others ]]; then
  echo "strict.sh: $1 has no tests for a GPU" >&2
  exit 1
fi
expect_tests "$2" "$others"
WEIR_STANDIN_LAUNCHES_BLOCK=1 "$2" --gtest_filter="$others"
held=$(tests_of "$1" '*WhileHeld.*')
if [[ -n $held ]]; then
  expect_tests "$2" "$held"
  "$2" --gtest_filter="$held"
fi
