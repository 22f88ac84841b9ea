#!/usr/bin/env bash
# Checks that no object file needs code to run before main: a program's own initialisers may call
# CUDA, and so a preloaded library, before those of the library have run.
#
#   no_initialiser.sh OBJECT...
#   no_initialiser.sh --self-test OBJECT   OBJECT has one
set -euo pipefail

has_initialiser() {
  readelf -SW "$1" | grep -E '\.(init_array|ctors)' >/dev/null
}

if [[ ${1:-} == --self-test ]]; then
  has_initialiser "$2" && exit 0
  echo "no initialiser was found in $2, which has one"
  exit 1
fi
(($# > 0)) || { echo "no_initialiser.sh: no objects to check" && exit 2; }
failed=0
for object in "$@"; do
  if has_initialiser "$object"; then
    echo "$object runs code before main"
    failed=1
  fi
done
exit "$failed"
