#!/usr/bin/env bash
# Checks that includes point only downward through the layers, and that CUDA's headers are included
# only where a file's name says so: a build without a toolkit leaves those files out.
#
#   layers.sh ROOT          checks the sources under ROOT; prints each violation, exits 1 if any
#   layers.sh --self-test   checks that the check itself finds violations, and nothing else
set -euo pipefail

# A layer and what it may include besides itself. What is not here (tests, most of tools, bench) is
# nobody's to include.
declare -A may_include=(
  [allocator]=""
  [scheduler]="allocator"
  [kernels]="allocator"
  [tools/timeline]="allocator"
  [trainer]="allocator scheduler kernels tools/timeline"
)

layers=(allocator scheduler kernels tools/timeline trainer)

# Prints FILE:LINE:INCLUDE for each include in layer $2 under root $1 that is not allowed there.
violations() {
  local root=$1 layer=$2 line path allowed
  allowed=" $layer ${may_include[$layer]} "
  while IFS= read -r line; do
    path=$(sed -E 's/^[^:]*:[0-9]+:[[:space:]]*#[[:space:]]*include[[:space:]]*["<]([^">]*).*/\1/' \
      <<<"$line")
    case $path in
      ../* | */../*) ;;  # one way to name a header, so that this check sees them all
      tools/timeline/*) [[ $allowed == *" tools/timeline "* ]] && continue ;;
      *) [[ $allowed == *" ${path%%/*} "* ]] && continue ;;
    esac
    echo "$line"
  done < <(
    cd "$root" && grep -rnE --include='*.hpp' --include='*.cpp' --include='*.cu' --include='*.cuh' \
      '^[[:space:]]*#[[:space:]]*include[[:space:]]*["<]([^">]*\.\./|(allocator|scheduler|kernels|trainer|tests|support|tools|bench)/)' \
      "$layer"
  )
}

# Prints FILE:LINE:INCLUDE for each of CUDA's headers in a file of layer $2 that is neither *_cuda.*
# nor *.cu.
strays() {
  local root=$1 layer=$2
  (
    cd "$root" && grep -rnE --include='*.hpp' --include='*.cpp' \
      '^[[:space:]]*#[[:space:]]*include[[:space:]]*[<"](cuda|cublas|cupti|nvtx|driver_types|vector_types)' \
      "$layer" | grep -vE '^[^:]*_cuda\.[hc]pp:'
  ) || true
}

check() {
  local root=$1 layer found bad=0
  for layer in "${layers[@]}"; do
    if [[ -z $(find "$root/$layer" -name '*.[hc]pp' -print -quit) ]]; then
      echo "layers: $root/$layer has no sources to check"
      bad=1
      continue
    fi
    found=$(violations "$root" "$layer")
    if [[ -n $found ]]; then
      echo "layers: $layer may include, besides itself, only: ${may_include[$layer]:-nothing}"
      echo "$found"
      bad=1
    fi
    found=$(strays "$root" "$layer")
    if [[ -n $found ]]; then
      echo "layers: only files named *_cuda.* and *.cu may include CUDA's headers"
      echo "$found"
      bad=1
    fi
  done
  return "$bad"
}

# Expects verdict $1 (ok or bad) when $3 is the include line of file $4 in layer $2.
expect() {
  local verdict=$1 layer=$2 include=$3 file=${4:-b.cpp} root=$scratch actual=ok
  rm -rf "${root:?}"/*
  local each
  for each in "${layers[@]}"; do mkdir -p "$root/$each" && touch "$root/$each/a.hpp"; done
  printf '#pragma once\n%s\n' "$include" >"$root/$layer/$file"
  check "$root" >/dev/null || actual=bad
  if [[ $actual != "$verdict" ]]; then
    echo "self-test: $layer with '$include' was found $actual, not $verdict"
    failed=1
  fi
}

self_test() {
  failed=0
  scratch=$(mktemp -d)
  trap 'rm -rf "$scratch"' EXIT
  local lower upper
  for lower in "${layers[@]}"; do
    for upper in "${layers[@]}"; do
      if [[ " $upper ${may_include[$upper]} " == *" $lower "* ]]; then
        expect ok "$upper" "#include \"$lower/a.hpp\""
      else
        expect bad "$upper" "#include \"$lower/a.hpp\""
      fi
    done
  done
  expect ok allocator '#include <vector>'
  expect ok allocator '// #include "scheduler/a.hpp"'
  expect bad allocator '#include <scheduler/a.hpp>'
  expect bad allocator '  #  include "scheduler/a.hpp"  // why'
  expect bad allocator '#include "../scheduler/a.hpp"'
  expect bad allocator '#include "allocator/../scheduler/a.hpp"'
  expect bad trainer '#include "support/fake.hpp"'
  expect bad trainer '#include "tools/replay/a.hpp"'
  expect bad tools/timeline '#include "tools/replay/a.hpp"'
  expect bad trainer '#include "tests/support/fake.hpp"'
  expect bad allocator '#include <cuda_runtime_api.h>'
  expect bad trainer '#include <cublas_v2.h>' cuda.hpp
  expect ok allocator '#include <cuda_runtime_api.h>' b_cuda.hpp
  expect ok kernels '#include <cuda_runtime_api.h>' b.cu
  rm -rf "${scratch:?}/kernels" && mkdir "$scratch/kernels"
  printf '#pragma once\n' >"$scratch/trainer/b.cpp"
  if check "$scratch" >/dev/null; then
    echo "self-test: a folder without sources was found ok"
    failed=1
  fi
  return "$failed"
}

case ${1:-} in
  --self-test) self_test ;;
  "" | -*)
    echo "usage: layers.sh ROOT | --self-test" >&2
    exit 2
    ;;
  *) check "$1" ;;
esac
