#!/usr/bin/env bash
# Compiles sources of the project $1 by the commands of preset release, with the compiler $2, and fails if it
# says anything: that preset's optimizer finds what that of preset dev does not. They are some of those where
# the release build had warnings, of each kind and each folder; to compile all of it takes some ten minutes.
set -euo pipefail
root=$1
sources=(
  scheduler/tensor.cpp
  tools/program/command_line.cpp
  tools/replay/show/plot.cpp
  tools/weir/commands/command_info.cpp
  trainer/model/weights.cpp
)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cmake -S "$root" --preset release -B "$scratch/build" -DCMAKE_CXX_COMPILER="$2" -DWEIR_BUILD_TESTS=OFF \
  -DWEIR_CUDA=OFF -DCMAKE_UNITY_BUILD=OFF >"$scratch/log" 2>&1 || { cat "$scratch/log" && exit 1; }

# The command of each, one a line, for the assembler's text alone.
python3 - "$root" "$scratch/build/compile_commands.json" "${sources[@]}" >"$scratch/commands" <<'END'
import json, sys

root, commands, *sources = sys.argv[1:]
command_of = {entry["file"]: entry["command"] for entry in json.load(open(commands))}
for source in sources:
    file = f"{root}/{source}"
    if file not in command_of:
        sys.exit(f"the release build has no {source}")
    print(command_of[file].partition(" -o ")[0], "-S -o /dev/null", file)
END
cd "$scratch/build"
if ! tr '\n' '\0' <"$scratch/commands" | xargs -0 -n 1 -P 2 bash -c >"$scratch/said" 2>&1 ||
  grep -qF 'warning: ' "$scratch/said"; then
  cat "$scratch/said"
  exit 1
fi
