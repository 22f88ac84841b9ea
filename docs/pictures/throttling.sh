#!/usr/bin/env bash
# Draws the simulated memory of policies and the run-ahead target over time, as README and
# docs/throttling.md show them.
#
#   throttling.sh WEIR_SIMULATE [FOLDER]      FOLDER: where the pictures go, else beside this script
set -euo pipefail

simulate=$1
here=$(dirname "$0")
to=${2:-$here}
"$simulate" --workload steady-2ms --budget 16 --batches 600 --policy unbounded,throttled \
  --svg "$to/throttling.svg"
"$simulate" --workload bursts --budget 16 --batches 160 --policy unbounded,throttled,batches-2 \
  --svg "$to/throttling_bursts.svg"
"$simulate" --workload bursts --budget 16 --batches 1600 --policy throttled \
  --svg "$to/throttling_target_bursts.svg" --svg-of target
"$simulate" --workload steady-2ms --budget 4 --batches 40000 --jitter "$here/hiccups.jitter" \
  --policy throttled --svg "$to/throttling_target_hiccups.svg" --svg-of target
