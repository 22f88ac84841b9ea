#!/usr/bin/env bash
# Makes the pictures of timelines in this folder: the job under three policies, recorded, each page as a
# browser shows it. Prints the reports of the same runs, which docs/timelines.md quotes. Or makes the
# picture of one page, such as that of a GPU (docs/gpu-check.md).
#
#   timelines.sh WEIR_TRAIN WEIR [FOLDER]      FOLDER: where the pictures go, else beside this script
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
train=$1 weir=$2
to=$(realpath "${3:-$(dirname "$0")}")
pages=$(mktemp -d)
trap 'rm -rf "$pages"' EXIT

"$train" compare --device cpu --small --inputs host --batch-size 256 --budget 24MiB \
  --batches 64 --rounds 1 --no-search --timeline "$pages"
for policy in unbounded barrier throttled; do
  draw "$pages/$policy.html" "$to/timeline_$policy.png"
  printf '\n== %s\n' "$policy"
  "$weir" timeline report "$pages/$policy.json"
done
