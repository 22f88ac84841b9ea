#!/usr/bin/env bash
# Checks that pages name and show what is there.
#
#   docs.sh invariants ROOT   docs/invariants.md names tests that exist, and every invariant's tests
#   docs.sh names ROOT        docs/architecture.md names classes, functions and files that exist, and
#                             docs/swap-in.md and docs/throttling.md members of classes
#   docs.sh shown ROOT        pages show the program and the project that the tests build
#   docs.sh calls ROOT        docs/cuda.md lists the calls of CUDA that the sources make, and no others
#   docs.sh variables ROOT    docs/environment.md lists the variables that the sources read, and so does
#                             allocator/base/variables.cpp
#   docs.sh --self-test       the check of names finds what is invented, and nothing else
# shellcheck disable=SC2016  # backticks of pages stand in single quotes
set -euo pipefail

# Test names of the sources under root $1 as Suite.Name.
known_tests() {
  find "$1/tests" -name '*.cpp' -exec cat {} + | tr '\n' ' ' | grep -oE 'TEST(_[PF])?\( *[A-Za-z0-9_]+, *[A-Za-z0-9_]+\)' |
    sed -E 's/^TEST(_[PF])?\( *([A-Za-z0-9_]+), *([A-Za-z0-9_]+)\)$/\2.\3/' | sort -u
}

check_invariants() {
  local root=$1 page=$1/docs/invariants.md failed=0 known named name number
  known=$(known_tests "$root")
  named=$(grep -oE '`[A-Z][A-Za-z0-9]*\.[A-Z][A-Za-z0-9]*`' "$page" | tr -d '`' |
    grep -v '^Docs\.' | sort -u)
  if [[ -z $known || -z $named ]]; then
    echo "docs.sh: found no tests, or none on the page: the check itself is broken"
    return 1
  fi
  while read -r name; do
    if ! grep -qxF "$name" <<<"$known"; then
      echo "docs/invariants.md names $name, which no test source has"
      failed=1
    fi
  done <<<"$named"
  while read -r name; do
    if ! grep -qxF "$name" <<<"$named"; then
      echo "docs/invariants.md does not name $name"
      failed=1
    fi
  done < <(grep '^Invariant[0-9]' <<<"$known")
  for number in 1 2 3 4 5 6 7 8 9 10; do
    if ! grep -q "^Invariant$number\." <<<"$known"; then
      echo "invariant $number has no test"
      failed=1
    fi
  done
  return "$failed"
}

# Sources under root $1, each file's comments and strings taken out, below scratch directory $2:
# what only a comment names does not exist.
strip_sources() {
  local root=$1 stripped=$2
  mkdir -p "$stripped"
  (cd "$root" && find allocator scheduler kernels trainer tests tools/preload \
    \( -name '*.hpp' -o -name '*.cpp' \) -type f -exec cp --parents -t "$stripped" {} +)
  find "$stripped" -type f -exec sed -E -i 's|//.*$||; s|"[^"]*"||g' {} +
}

# Whether class $2 of the stripped sources in $1 has the member $3: a file that declares the class
# names it, or a source file defines it.
has_member() {
  local stripped=$1 class=$2 member=$3 files
  files=$(grep -rlE "\b(class|struct)( [A-Z_]+(\(\))?)? $class\b[^;]*(\{|$)" "$stripped" || true)
  [[ -n $files ]] || return 1
  xargs -d '\n' grep -qw -- "$member" <<<"$files" ||
    grep -rqE "\b$class::$member\b" "$stripped"
}

# Whether $3, written as code on a page, is in the tree with root $1 and stripped sources $2. What is
# no name, such as a formula, passes.
exists() {
  local root=$1 stripped=$2 name=${3%%(*}
  case $name in
    weir::*) grep -rqE "^ *NAME ${name#weir::}\b" "$root"/*/CMakeLists.txt ;;
    *[!A-Za-z0-9_:./]* | "") return 0 ;;
    *::*) has_member "$stripped" "${name%%::*}" "${name##*::}" ;;
    */*) [[ -e $root/$name ]] ;;
    *.hpp | *.cpp) [[ -n $(find "$stripped" -name "$name" -print -quit) ]] ;;
    *.*) known_tests "$root" | grep -xF "$name" >/dev/null ||
      grep -rqF --include=CMakeLists.txt "NAME $name" "$root/tests" ;;
    *) if [[ $3 == *"("* ]]; then
      grep -rqE "\b$name ?\(" "$stripped"
    else
      grep -rqw -- "$name" "$stripped"
    fi ;;
  esac
}

# Calls of CUDA in the sources under root $1: of its runtime, and what is looked up in cuBLAS.
cuda_calls() {
  grep -rhoE '\bcuda[A-Z][A-Za-z0-9_]*\(|look_up\(library, "cublas[A-Za-z0-9_]*' --include='*_cuda.*' --include='*.cu' \
    "$1"/allocator "$1"/scheduler "$1"/kernels "$1"/trainer "$1"/bench "$1"/tools |
    sed -E 's/.*"//; s/\($//' | sort -u
}

check_calls() {
  local root=$1 page=$1/docs/cuda.md failed=0 made listed name
  made=$(cuda_calls "$root")
  listed=$(grep '^|' "$page" | grep -oE '`(cuda|cublas)[A-Z][A-Za-z0-9_]*`' | tr -d '`' | sort -u)
  if [[ -z $made || -z $listed ]]; then
    echo "docs.sh: found no calls of CUDA, or none on the page: the check itself is broken"
    return 1
  fi
  while read -r name; do
    echo "docs/cuda.md does not list $name"
    failed=1
  done < <(comm -23 <(echo "$made") <(echo "$listed"))
  while read -r name; do
    echo "docs/cuda.md lists $name, which nothing calls"
    failed=1
  done < <(comm -13 <(echo "$made") <(echo "$listed"))
  return "$failed"
}

check_variables() {
  local root=$1 failed=0 read_ listed known
  read_=$(grep -rhoE '\{"WEIR_[A-Z_]*[A-Z]"' --include='*.cpp' \
    "$root"/allocator "$root"/scheduler "$root"/trainer "$root"/tools/preload "$root"/tools/timeline "$root"/tools/weir |
    tr -d '{"' | grep -v '^WEIR_CHECKED$' | sort -u)  # which nobody sets but `weir run`
  listed=$(grep -oE '^\| `WEIR_[A-Z_]+`' "$root/docs/environment.md" | tr -d '|` ' | sort -u)
  known=$(sed -n '/kKnown{/,/};/p' "$root/allocator/base/variables.cpp" | grep -oE 'WEIR_[A-Z_]+' | sort -u)
  if [[ -z $read_ ]]; then
    echo "docs.sh: found no variables: the check itself is broken"
    return 1
  fi
  if [[ $read_ != "$listed" ]]; then
    echo "the sources read and docs/environment.md lists:"
    diff <(echo "$read_") <(echo "$listed") || failed=1
  fi
  if [[ $read_ != "$known" ]]; then
    echo "the sources read and allocator/base/variables.cpp knows:"
    diff <(echo "$read_") <(echo "$known") || failed=1
  fi
  return "$failed"
}

check_names() {
  local root=$1 page=$1/docs/architecture.md stripped=$scratch/stripped failed=0 names name
  # A policy, which the sources have as a string.
  local -A spared=([unbounded]=1 [barrier]=1 [throttled]=1 [backstop]=1)
  rm -rf "$stripped"
  strip_sources "$root" "$stripped"
  names=$(grep -oE '`[^`]+`' "$page" | tr -d '`' | sort -u)
  if [[ $(grep -cE '::|\(' <<<"$names") -eq 0 ]]; then
    echo "docs.sh: found no functions on the page: the check itself is broken"
    return 1
  fi
  while IFS= read -r name; do
    if [[ -z ${spared[$name]:-} ]] && ! exists "$root" "$stripped" "$name"; then
      echo "docs/architecture.md names $name, which the sources do not have"
      failed=1
    fi
  done <<<"$names"
  # These pages are full of CUDA's names, of variables and of formulas, which are not looked for.
  for page in swap-in throttling; do
    while IFS= read -r name; do
      if ! exists "$root" "$stripped" "$name"; then
        echo "docs/$page.md names $name, which the sources do not have"
        failed=1
      fi
    done < <(grep -oE '`[A-Z][A-Za-z]*::[a-z_]+`' "$root/docs/$page.md" | tr -d '`' | sort -u)
  done
  return "$failed"
}

# The first block of language $2 on page $1.
first_block() {
  awk -v fence="\`\`\`$2" '/^```/ { if (inside) exit; inside = ($0 == fence); next } inside' "$1"
}

# The part of file $1 between its marks "begin $2" and "end $2", without its indentation.
marked_part() {
  awk -v begin="  // begin $2" -v end="  // end $2" '$0 == end { exit } inside; $0 == begin { inside = 1 }' "$1" |
    sed 's/^  //'
}

check_shown() {
  local root=$1 consumer=$1/tests/package/consumer failed=0 page part shown name file
  page=$(<"$root/docs/using-the-library.md")
  for shown in {views,streams,gate}:tests/scheduler/device/standin_examples_test.cpp \
    pool:tests/allocator/adapt/cuda_resource_standin_test.cpp swapped-in:tests/frameworks/with_rmm.cpp \
    containers:tests/package/consumer/containers.cpp; do
    name=${shown%%:*} file=${shown#*:}
    part=$(marked_part "$root/$file" "$name")
    if [[ -z $part || $page != *"\`\`\`cpp"$'\n'"$part"$'\n'"\`\`\`"* ]]; then
      echo "docs/using-the-library.md does not show what is in $file as $name"
      failed=1
    fi
  done
  diff -u "$consumer/main.cpp" <(first_block "$root/docs/using-the-library.md" cpp) || failed=1
  diff -u "$consumer/CMakeLists.txt" <(first_block "$root/docs/newcomer.md" cmake) || failed=1
  if ((failed)); then
    echo "docs/using-the-library.md and docs/newcomer.md do not show what is in $consumer"
  fi
  return "$failed"
}

# Expects verdict $1 (ok or bad) when a page of the tree in $tree names $2 beside what exists.
expect() {
  local actual=ok
  printf 'Calls `Pool::grow` and `%s`.\n' "$2" >"$tree/docs/architecture.md"
  check_names "$tree" >/dev/null || actual=bad
  if [[ $actual != "$1" ]]; then
    echo "self-test: a page that names '$2' was found $actual, not $1"
    failed=1
  fi
}

self_test() {
  local tree=$scratch/tree failed=0
  mkdir -p "$tree"/{docs,allocator,scheduler,kernels,trainer,tests/allocator,tools/preload}
  touch "$tree/docs/swap-in.md" "$tree/docs/throttling.md"
  cat >"$tree/allocator/pool.hpp" <<'SOURCE'
class Pool {
  void* grow(int request);  // once mentioned()
  static constexpr auto kText = "quoted";
};
SOURCE
  echo 'class Slab final : public Base { void cut(); };' >"$tree/allocator/slab.hpp"
  echo 'void Pool::shrink() {}' >"$tree/allocator/pool.cpp"
  echo 'weir_library(
  NAME allocator' >"$tree/allocator/CMakeLists.txt"
  echo 'TEST(Pool, Grows) {}' >"$tree/tests/allocator/pool_test.cpp"
  echo 'add_test(NAME Layers.Hold' >"$tree/tests/CMakeLists.txt"

  local name
  for name in Pool Pool::grow 'Pool::grow(request)' 'grow()' grow Pool::shrink Slab::cut pool.hpp \
    allocator/pool.cpp weir::allocator Pool.Grows Layers.Hold 'held + spent > budget' unbounded; do
    expect ok "$name"
  done
  for name in Invented Pool::invented 'Pool::invented(request)' 'invented()' invented Invented::grow \
    Slab::grow 'mentioned()' mentioned quoted 'kText()' invented.hpp allocator/invented.cpp \
    weir::invented Pool.Invents; do
    expect bad "$name"
  done
  mkdir -p "$tree"/{scheduler,kernels,trainer,bench,tools}
  echo 'check(cudaFree(p)); look_up(library, "cublasCreate_v2", create);' >"$tree/allocator/free_cuda.cpp"
  for name in '| `cudaFree`, `cublasCreate_v2` |:ok' '| `cudaFree` |:bad' \
    '| `cudaFree`, `cublasCreate_v2`, `cudaMalloc` |:bad' 'cudaFree, cublasCreate_v2:bad'; do
    echo "${name%:*}" >"$tree/docs/cuda.md"
    if [[ ${name##*:} != $(check_calls "$tree" >/dev/null && echo ok || echo bad) ]]; then
      echo "self-test: the calls on the page '${name%:*}' were not found ${name##*:}"
      failed=1
    fi
  done
  printf 'Calls `Pool::grow`.\n' >"$tree/docs/architecture.md"
  printf 'Calls `Pool::invented`, and `cuMemAlloc`.\n' >"$tree/docs/swap-in.md"
  if check_names "$tree" >/dev/null; then
    echo "self-test: an invented member on the page of the swap-in was not found"
    failed=1
  fi
  printf 'Calls `Pool::grow`, and `cuMemAlloc`.\n' >"$tree/docs/swap-in.md"
  if ! check_names "$tree" >/dev/null; then
    echo "self-test: the page of the swap-in was found bad, not ok"
    failed=1
  fi
  echo 'Names nothing.' >"$tree/docs/architecture.md"
  if check_names "$tree" >/dev/null; then
    echo "self-test: a page without names was found ok"
    failed=1
  fi
  return "$failed"
}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
case ${1:-}:$# in
  invariants:2) check_invariants "$2" ;;
  names:2) check_names "$2" ;;
  shown:2) check_shown "$2" ;;
  calls:2) check_calls "$2" ;;
  variables:2) check_variables "$2" ;;
  --self-test:1) self_test ;;
  *)
    echo "usage: docs.sh invariants|names|shown|calls|variables ROOT | --self-test" >&2
    exit 2
    ;;
esac
