#!/usr/bin/env bash
# Checks the preset portable under root $1 without building it, and the check of what it makes on
# weir-gpu ($2) as it is built for every day.
set -euo pipefail
root=$1
program=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0

# Says that $1 does not hold.
wrong() {
  echo "portable: wrong: $1"
  failed=1
}

# Without CUDA, which a machine need not have to have the archives.
cmake -S "$root" --preset portable -B "$scratch/build" -DWEIR_CUDA=OFF >"$scratch/log" 2>&1 ||
  { cat "$scratch/log" && exit 1; }
link=$(ninja -C "$scratch/build" -t commands weir-gpu | grep -- ' -o weir-gpu ') ||
  wrong "weir-gpu is linked at the top of the build folder"
for word in libopenblas.a libgtest.a libgmock.a; do
  [[ $link == *"/$word "* ]] || wrong "$word is linked in"
done
# How the program $1 is linked.
check_link() {
  local program=$1 link=$2 word
  for word in -static-libstdc++ -static-libgcc -s; do
    [[ $link == *" $word "* ]] || wrong "$program is linked with $word"
  done
  # Else it needs a newer C library than the others.
  [[ $link == *arc4random* ]] || wrong "$program has random numbers of its own"
  [[ $link != *.so* ]] ||
    wrong "$program names no shared library: $(grep -oE '[^ ]*\.so[^ ]*' <<<"$link" | tr '\n' ' ')"
}
check_link weir-gpu "$link"
check_link weir "$(ninja -C "$scratch/build" -t commands weir | grep -- ' -o weir ')"

preloaded=$(ninja -C "$scratch/build" -t commands weir-gpu | grep -- ' -o libweir_timeline.so ') ||
  wrong "libweir_timeline.so is built with weir-gpu, at the top of the build folder"
for word in -static-libstdc++ -static-libgcc -s; do
  [[ $preloaded == *" $word "* ]] || wrong "libweir_timeline.so is linked with $word"
done

check=$root/tools/gpu_check/portable_check
c_only=$(type -P true)
mkdir "$scratch/tree" "$scratch/tree/build"
head -c 1000 /dev/zero >"$scratch/tree/source"
head -c 5000 /dev/zero >"$scratch/tree/build/object"
size=$(stat -c %s "$c_only")
"$check" $((1000 + 2 * size + 1)) "$scratch/tree" "$c_only" "$c_only" >"$scratch/out" ||
  wrong "a program of the C library alone can be carried"
grep -q 'libc.so.6; glibc [0-9]' "$scratch/out" || wrong "it is told what the other machine must have"
grep -q "^all that is carried: $((1000 + 2 * size)) bytes" "$scratch/out" ||
  wrong "the tree and all programs are added up"
if "$check" $((1000 + 2 * size)) "$scratch/tree" "$c_only" "$c_only" >/dev/null 2>"$scratch/err"; then
  wrong "what is too large together cannot"
fi
grep -q 'must stay under' "$scratch/err" || wrong "and it says so"
if "$check" 1000000000 "$scratch/tree" "$program" >/dev/null 2>"$scratch/err"; then
  wrong "one with shared libraries cannot"
fi
grep -q 'libstdc++' "$scratch/err" || wrong "and it names them"
grep -q 'is not stripped' "$scratch/err" || wrong "and it says that it has symbols"

# Of a checkout: what git knows or does not ignore, as long as it is there.
git -C "$scratch/tree" init -q
echo /build >"$scratch/tree/.gitignore"
head -c 300 /dev/zero >"$scratch/tree/removed"
git -C "$scratch/tree" add .gitignore removed
rm "$scratch/tree/removed"
"$check" 60000000 "$scratch/tree" "$c_only" >"$scratch/out" || wrong "a file that was removed is no error"
grep -q '^the source tree: 1007 bytes' "$scratch/out" || wrong "untracked files are carried, too"
"$check" 60000000 "$root" "$c_only" >"$scratch/out" || wrong "the tree leaves room for the programs"
exit "$failed"
