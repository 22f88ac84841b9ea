#!/usr/bin/env bash
# Writes the API reference; any warning of Doxygen's is an error.
#
#   reference.sh DOXYFILE               the reference of the public headers
#   reference.sh --self-test DOXYFILE   a name without a docstring, and a wrong one, are found
set -euo pipefail
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# Runs Doxygen with the settings in $1 and, after those, the lines in "${@:2}".
write_reference() {
  local doxyfile=$1
  shift
  { cat "$doxyfile" && printf '%s\n' "OUTPUT_DIRECTORY = $scratch" "$@"; } | doxygen -
}

self_test() {
  local header=$scratch/header.hpp failed=0
  expect() {
    local verdict=$1 actual=ok
    printf '/// @file\n/// A header.\n\n/// All names.\nnamespace weir {\n%s\n}\n' "$2" >"$header"
    write_reference "$doxyfile" "INPUT = $header" >"$scratch/log" 2>&1 || actual=bad
    if [[ $actual != "$verdict" ]]; then
      echo "self-test: '$2' was found $actual, not $verdict: $(cat "$scratch/log")"
      failed=1
    fi
  }
  expect ok '/// What it is.
struct Documented {
  int size = 0;  ///< in bytes
};'
  expect bad 'struct Undocumented {
  int size = 0;  ///< in bytes
};'
  expect bad 'int undocumented();'
  expect bad '/// What it is.
struct Documented {
  int size = 0;
};'
  expect bad '/// What it does.
/// @param invented what it does not take
int documented(int taken);'
  expect bad '/// What @ref invented does.
int documented();'
  return "$failed"
}

case ${1:-}:$# in
  --self-test:2)
    doxyfile=$2
    self_test
    ;;
  [!-]*:1)
    write_reference "$1"
    for page in index classweir_1_1Pool classweir_1_1Scheduler namespaceweir; do
      [[ -f $scratch/$page.html ]] || { echo "the reference has no $page.html" && exit 1; }
    done
    grep -q 'weir/allocator/pool.hpp' "$scratch/classweir_1_1Pool.html" ||
      { echo "the reference does not say that Pool is in weir/allocator/pool.hpp" && exit 1; }
    ;;
  *)
    echo "usage: reference.sh [--self-test] DOXYFILE" >&2
    exit 2
    ;;
esac
