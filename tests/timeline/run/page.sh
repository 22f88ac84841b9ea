#!/usr/bin/env bash
# Runs the commands of docs/timelines.md and compares what it shows of reports with what they say:
#
#   page.sh PAGE WEIR WEIR_TRAIN [LIBRARY STANDIN]
#
# LIBRARY is libweir.so, and STANDIN a folder with a driver for programs to run on: with them, what the
# page says of any CUDA program is run too. `torchrun` is a script here, which starts weir-train as its
# ranks: that reads the same variables.
# shellcheck disable=SC2016  # backticks of pages stand in single quotes
set -euo pipefail
if (($# != 3 && $# != 5)); then
  echo "usage: page.sh PAGE WEIR WEIR_TRAIN [LIBRARY STANDIN]" >&2
  exit 2
fi
page=$1 weir=$2 train=$3 library=${4:-} standin=${5:-}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$scratch/bin" "$scratch/run"
ln -s "$weir" "$scratch/bin/weir"
ln -s "$train" "$scratch/bin/weir-train"
cat >"$scratch/bin/torchrun" <<SCRIPT
#!/usr/bin/env bash
for rank in 0 1 2 3; do
  RANK=\$rank '$train' run --device cpu --batches 4 --batch-size 8
done
SCRIPT
# A program of the user's: allocates on the device, in batches where Weir is in it. `told.py` makes as many
# as each line of its input says, and answers when they are done; `part.py` records some of them.
cat >"$scratch/bin/python" <<'SCRIPT'
#!/usr/bin/env bash
exec python3 -B -c '
import ctypes, sys
cuda, ours = ctypes.CDLL("libcuda.so.1"), ctypes.CDLL(None)
context, address = ctypes.c_void_p(), ctypes.c_uint64()
assert cuda.cuInit(0) == 0 and cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert cuda.cuCtxSetCurrent(context) == 0
def make(batches):
    for _ in range(batches):
        ours.weir_batch_begin(b"train")
        assert cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(1 << 20)) == 0
        assert cuda.cuMemFree_v2(address) == 0
        ours.weir_batch_end()
if sys.argv[1:] == ["told.py"]:
    for line in sys.stdin:
        make(int(line))
        print(line, end="", flush=True)
elif sys.argv[1:] == ["part.py"]:
    import weir
    make(2)
    with weir.timeline("run.json"):
        make(5)
    make(3)
else:
    make(24)
' "$@"
SCRIPT
chmod +x "$scratch"/bin/{torchrun,python}
export PATH="$scratch/bin:$PATH"
unset "${!WEIR_@}" RANK LOCAL_RANK
cd "$scratch/run"

failed=0 commands=0
run() {
  commands=$((commands + 1))
  if ! bash -c "$1" >"$scratch/out" 2>&1; then
    echo "page.sh: a command of the page failed: $1"
    tail -n 5 "$scratch/out"
    failed=1
  fi
}
made() {
  if [[ ! -s $1 ]]; then
    echo "page.sh: nothing made $1"
    failed=1
  fi
}

# Waits until signal.json has COUNT events WHAT: it is written some time after a signal came.
await() { # COUNT WHAT
  local i
  for ((i = 0; i < 600; ++i)); do
    (($(grep -c "\"cat\":\"$2\"" signal.json) < $1)) || return 0
    sleep 0.1
  done
  echo "page.sh: after a minute the file has not $1 times '$2'"
  return 1
}
# Sends a program what the page says that ends and begins its recording.
signals() {
  local command pid to from answer
  command=$(grep -oE '`kill -USR2 PID`' "$page" | tr -d '`')
  coproc PROGRAM { WEIR_TIMELINE=signal.json LD_PRELOAD=$library exec python told.py 2>"$scratch/told"; }
  pid=$PROGRAM_PID to=${PROGRAM[1]} from=${PROGRAM[0]}
  batches() {
    echo "$1" >&"$to"
    read -r -t 60 answer <&"$from" && [[ $answer == "$1" ]]
  }
  if batches 3 && run "${command/PID/$pid}" && await 1 stop &&
    batches 5 && run "${command/PID/$pid}" && await 2 start && batches 4; then
    exec {to}>&-
    wait "$pid" || failed=1
    run "weir timeline report signal.json --json - | grep -q '\"batches\": 7,'"
    run "(( \$(grep -c '\"cat\":\"allocate\"' signal.json) == 7 ))"
  else
    echo "page.sh: a program did not do as its signals told it: '$command'"
    tail -n 5 "$scratch/told"
    kill "$pid" || true
    failed=1
  fi
}

# The table of how to record, whose commands stand in backticks.
run "weir-train run --timeline run.json --device cpu --batches 4 --batch-size 8"
if [[ -n $library ]]; then
  export WEIR_LIBRARY=$library LD_LIBRARY_PATH=$standin
  while read -r command; do
    rm -f run.json
    run "$command"
    made run.json
    run "weir timeline report run.json | grep -q '^Memory of GPU 0'"
  done < <(grep -oE '`(weir timeline record -o|WEIR_TIMELINE=run.json LD_PRELOAD)[^`]*`' "$page" | tr -d '`')
  run "weir timeline record --batches 10:20 -o part.json -- python train.py"
  run "weir timeline report part.json --json - | grep -q '\"batches\": 10,'"
  run "PYTHONPATH='$(dirname "$page")/../tools/python' LD_PRELOAD=$library python part.py"
  run "weir timeline report run.json --json - | grep -q '\"batches\": 5,'"
  signals
  unset LD_LIBRARY_PATH
fi
# The commands in blocks. What records a program has run above.
while read -r command; do
  run "$command"
  # The frontend runs ahead only on a processor of its own. While other programs have that, memory lasts.
  for _ in 1 2 3 4; do
    [[ $command == *' --timeline pages' && ! -s pages/unbounded.oom.pftrace ]] || break
    run "$command"
    commands=$((commands - 1)) # it was counted
  done
done < <(sed -n '/^```sh/,/^```$/p' "$page" |
  grep -E '^(weir(-train)? [a-z]|WEIR_[A-Z]+=)' | grep -v '^weir timeline record' | sed 's/  *#.*$//')
for file in all.pftrace report.html run.pftrace run.pickle pages/unbounded.oom.html pages/throttled.html; do
  made "$file"
done

# What is shown of a report: the same line of the same source is there, with what happened at it.
weir timeline report pages/barrier.json >"$scratch/barrier"
weir timeline report pages/unbounded.json >"$scratch/unbounded"
shown=0
while read -r site _ what; do
  shown=$((shown + 1))
  if ! grep -qE "$site +[0-9.]+ +$what" "$scratch/barrier"; then
    echo "page.sh: the page shows '$site $what', and a report does not"
    failed=1
  fi
done < <(grep -oE '^ +trainer/[a-z/]+\.cpp:[0-9]+ +[0-9.]+ +[a-z_]+' "$page" | sed 's/\./\\./g')
# Prints the summaries in file $1 as a line each: what begins with the process, and the indented lines after it.
summaries() {
  awk '/^weir-train \(process / { text = $0; next }
       text != "" && /^  / { sub(/^ +/, ""); text = text " " $0; next }
       text != "" { print text; text = "" }
       END { if (text != "") print text }' "$1"
}
# A report begins with the process and its summary, of which lost events are a part.
for report in barrier unbounded; do
  summaries "$scratch/$report" | grep -qE '^weir-train \(process [0-9]+\): .*peak .*; 0 events lost$' || {
    echo "page.sh: the report '$report' does not begin with a summary"
    failed=1
  }
done
if (($(summaries "$page" | grep -cE '^weir-train \(process [0-9]+\): peak .*; 0 events lost$') != 2)); then
  echo "page.sh: the page shows other first lines of reports"
  failed=1
fi
# The page's reports are of the commands that it shows: their budgets and numbers of barriers are the same.
for report in barrier unbounded; do
  budget=$(summaries "$scratch/$report" | grep -oE 'of [0-9.]+ [KMG]iB at')
  if (($(grep -cE "^weir-train \(process [0-9]+\): peak .* $budget" "$page") != 2)); then
    echo "page.sh: the page shows reports with another budget than '$budget'"
    failed=1
  fi
done
barriers=$(grep -oE '^ +trainer/run/train\.cpp:[0-9]+ +[0-9.]+ +barrier +[0-9]+' "$scratch/barrier" | awk '{ print $4 }')
if [[ $(grep -oE '^ +trainer/run/train\.cpp:[0-9]+ +[0-9.]+ +barrier +[0-9]+' "$page" | awk '{ print $4 }') != "$barriers" ]]; then
  echo "page.sh: a report has $barriers barriers, and the page shows another number"
  failed=1
fi
out_of_memory=$(grep -oE 'for inputs, batch [0-9]+ \(train\), trainer/run/feed.cpp:[0-9]+' "$page" | sed 's/.*, //')
grep -qE "^Out of memory at .* for inputs, .*$out_of_memory$" "$scratch/unbounded" || {
  echo "page.sh: memory runs out elsewhere than at $out_of_memory"
  failed=1
}
if ((commands < 9 || shown < 3)); then
  echo "page.sh: found $commands commands and $shown lines of a report: the check itself is broken"
  failed=1
fi
exit "$failed"
