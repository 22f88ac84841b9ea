#!/usr/bin/env bash
# Makes the pictures of timelines in this folder: the job under three policies, recorded, each page as a
# browser shows it. Or the picture of one page, such as that of a GPU (docs/gpu-check.md).
#
#   timelines.sh WEIR_TRAIN [FOLDER]      FOLDER: where the pictures go, else beside this script
#   timelines.sh --page PAGE.html PICTURE.png
set -euo pipefail

# Draws the page $1 as the picture $2.
draw() {
  chromium --headless=new --no-sandbox --disable-gpu --hide-scrollbars --window-size=1200,800 \
    --virtual-time-budget=4000 --screenshot="$(realpath "$2")" "file://$(realpath "$1")" 2>/dev/null
}

if [[ $1 == --page ]]; then
  draw "$2" "$3"
  exit
fi
train=$1
to=$(realpath "${2:-$(dirname "$0")}")
pages=$(mktemp -d)
trap 'rm -rf "$pages"' EXIT

"$train" compare --device cpu --small --inputs host --batch-size 96 --budget 5MiB \
  --batches 48 --rounds 1 --no-search --timeline "$pages"
for policy in unbounded barrier throttled; do
  draw "$pages/$policy.html" "$to/timeline_$policy.png"
done
