#!/usr/bin/env bash
# Draws the simulated memory of policies over time, as README and docs/throttling.md show it.
#
#   throttling.sh WEIR_SIMULATE [FOLDER]      FOLDER: where the pictures go, else beside this script
set -euo pipefail

simulate=$1
to=${2:-$(dirname "$0")}
"$simulate" --workload steady-2ms --budget 4 --batches 40 --policy unbounded,throttled \
  --svg "$to/throttling.svg"
"$simulate" --workload bursts --budget 16 --batches 120 --policy unbounded,throttled,batches-2 \
  --svg "$to/throttling_bursts.svg"
