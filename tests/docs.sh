#!/usr/bin/env bash
# Fails when docs/invariants.md names a test that no test source has, or leaves out an invariant's.
# usage: tests/docs.sh REPOSITORY
set -euo pipefail
root=$1
page=$root/docs/invariants.md
failed=0

sources=$(cat "$root"/tests/*/*.cpp)
# Test names of the sources as Suite.Name.
known=$(tr '\n' ' ' <<<"$sources" |
  grep -oE 'TEST(_[PF])?\( *[A-Za-z0-9_]+, *[A-Za-z0-9_]+\)' |
  sed -E 's/^TEST(_[PF])?\( *([A-Za-z0-9_]+), *([A-Za-z0-9_]+)\)$/\2.\3/' | sort -u)
named=$(grep -oE '`[A-Z][A-Za-z0-9]*\.[A-Z][A-Za-z0-9]*`' "$page" | tr -d '`' |
  grep -v '^Docs\.' | sort -u)

if [[ -z $known || -z $named ]]; then
  echo "docs.sh: found no tests, or none on the page: the check itself is broken"
  exit 1
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
for number in 1 2 3 4 5 6 7 8 9; do
  if ! grep -q "^Invariant$number\." <<<"$known"; then
    echo "invariant $number has no test"
    failed=1
  fi
done
exit $failed
