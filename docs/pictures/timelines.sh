#!/usr/bin/env bash
# Makes the pictures of timelines in this folder: the job under three policies, recorded, each page as a
# browser shows it.
#
#   timelines.sh WEIR_TRAIN [FOLDER]    FOLDER: where the pictures go, else beside this script
set -euo pipefail

train=$1
to=$(realpath "${2:-$(dirname "$0")}")
pages=$(mktemp -d)
trap 'rm -rf "$pages"' EXIT

"$train" compare --device cpu --small --batch-size 256 --budget 16MiB --batches 80 \
  --rounds 1 --no-search --timeline "$pages"
for policy in unbounded barrier throttled; do
  chromium --headless=new --no-sandbox --disable-gpu --hide-scrollbars --window-size=1200,800 \
    --virtual-time-budget=4000 \
    --screenshot="$to/timeline_$policy.png" "file://$pages/$policy.html" 2>/dev/null
done
