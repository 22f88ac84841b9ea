# The steps of a run. For tools/gpu-check.
# shellcheck shell=bash disable=SC2154

# Each job is a timeout, which makes itself a group; its whole group is told: a timeout that has just begun
# its command does not tell it yet. The shell's own list, since the signal may come right after a job began.
trap '
  for job in $(jobs -p); do kill -- "-$job" 2>/dev/null || kill "$job" 2>/dev/null; done
  exit 130' HUP INT TERM

# Records the step named $1: exit code $2, seconds $3, limit $4, command line or reason $5.
note() {
  printf '%s\t%s\t%s\t%s\t%s\n' "$@" >>"$run/steps.tsv"
}

# Prints how long the step $1 may take now.
time_for() {
  local name after=0 seen=false
  for name in "${planned[@]}"; do
    if $seen; then after=$((after + share[$name])); fi
    if [[ $name == "$1" ]]; then seen=true; fi
  done
  allowance "${share[$1]}" $((deadline - SECONDS)) "$after"
}

# Runs the command "$2"... as the step named $1, within its time. Its output is its log, or its
# figures go to the file in $figures. With $as_it_is it gets the machine's own settings; otherwise
# it is a program of ours. Records failures and lets the next step run.
step() {
  local name=$1 limit status=0 started=$SECONDS
  shift
  limit=$(time_for "$name")
  printf '== %s, at most %d s: ' "$name" "$limit" >&2
  if ((limit > 0)); then
    (
      exec </dev/null 2>"$run/$name.log"
      if [[ -n ${figures:-} ]]; then exec >"$figures"; else exec >&2; fi
      if [[ -n ${as_it_is:-} ]]; then exec timeout -k 5 "$limit" "$@"; fi
      own timeout -k 5 "$limit" "$@"
    ) &
    wait $! || status=$?
  else
    status=124
  fi
  note "$name" "$status" $((SECONDS - started)) "$limit" "$*"
  case $status in
    0) printf 'ok, %d s\n' $((SECONDS - started)) >&2 ;;
    124 | 137) printf 'stopped; %s\n' "$run/$name.log" >&2 ;;
    *) printf 'FAILED (exit %d); %s\n' "$status" "$run/$name.log" >&2 ;;
  esac
}

step_compare() {
  local inputs=${1##*_} size=$x1
  if [[ $1 == *_x16_* ]]; then size=$x16; fi
  # One more run of each kind beside each of throttled's: some eight runs of a second.
  if [[ $1 == *_x1_ring ]]; then size+=" --static"; fi
  # shellcheck disable=SC2086  # several words
  step "$1" "$program" train compare --device cuda --inputs "$inputs" $size --json "$run/$1.json"
}

# Runs all tests under the tool $1 except those that match the patterns "$2"...
step_sanitizer() {
  local tool=$1 filter=$tests but
  shift
  but=$(IFS=: && echo "$*")
  # A rehearsal's filter may already leave out some.
  if [[ -n $but ]]; then
    if [[ $filter == *-* ]]; then filter+=:$but; else filter+=-$but; fi
  fi
  if [[ -z $sanitizer ]]; then
    note "$tool" - 0 0 "there is no compute-sanitizer on this machine's PATH"
    return
  fi
  # A refused call is no memory error, and tests provoke some.
  step "$tool" "$sanitizer" --tool "$tool" --report-api-errors no --error-exitcode 99 \
    "$program" test --gtest_filter="$filter"
}

# Replays real allocation traces on the device's own memory.
step_traces() {
  local weir=${program%/*}/weir
  if [[ ! -e $weir ]]; then
    note traces - 0 0 "there is no weir beside ${program##*/}"
    return
  fi
  # shellcheck disable=SC2086  # several words
  figures=$run/traces.json step traces "${trace_settings[@]}" "$weir" replay $traces \
    --pool round:24,best_fit,paged --upstream cuda --no-search --json -
}

# Records why step $1, of programs in Python, is left out. Fails if it is not.
programs_left_out() {
  local name=$1 tool
  for tool in weir libweir.so; do
    if [[ ! -e ${program%/*}/$tool ]]; then
      note "$name" - 0 0 "there is no $tool beside ${program##*/}"
      return 0
    fi
  done
  if [[ -z $(type -P "$python" || true) ]]; then
    note "$name" - 0 0 "there is no $python on this machine"
    return 0
  fi
  return 1
}

# Runs a PyTorch program under recordings, and beside other profilers.
step_timeline_programs() {
  local limit
  if programs_left_out timeline_programs; then return; fi
  limit=$(($(time_for timeline_programs) - programs_margin))
  # shellcheck disable=SC2086  # several words
  as_it_is=yes step timeline_programs "$python" tools/gpu_check/programs/record_all.py \
    --weir "${program%/*}/weir" --library "${program%/*}/libweir.so" \
    --inject "${program%/*}/libweir_timeline.so" --count "$program" \
    --output "$run/timeline_programs.json" --limit "$((limit > 1 ? limit : 1))" $program_flags
}

# Measures what a recording costs the main job.
step_timeline_cost() {
  # shellcheck disable=SC2086  # several words
  figures=$run/timeline_cost.json step timeline_cost tools/gpu_check/timeline_cost "$program" \
    "$run/timeline_cost" "$cost_pairs" $cost_flags
}

# Runs programs that know nothing of Weir, with the machine's libraries.
step_programs() {
  local limit
  if programs_left_out programs; then return; fi
  as_it_is=yes step warm_up "$python" -B tools/gpu_check/programs/warm_up.py
  # A little less than the step has, so that results are written and nothing runs on.
  limit=$(($(time_for programs) - programs_margin))
  # shellcheck disable=SC2086  # several words
  as_it_is=yes step programs "$python" tools/gpu_check/programs/run_all.py \
    --weir "${program%/*}/weir" --library "${program%/*}/libweir.so" --output "$run/programs.json" \
    --limit "$((limit > 1 ? limit : 1))" ${which:+--only "$which"} $program_flags
}

# Runs the tests while reading the frameworks from disk, so that the next call's programs find them
# in memory on the same machine. The reading ends before any step that takes times, and has less
# time than the tests, so it costs the call no time.
step_tests() {
  local limit=${share[warm_up]} status=0 started=$SECONDS warming
  local command=("$python" -B tools/gpu_check/programs/warm_up.py)
  ((limit <= deadline - SECONDS)) || limit=$((deadline - SECONDS))
  # Without that Python this fails at once, and the programs report it.
  timeout -k 5 "$limit" "${command[@]}" </dev/null >"$run/warm_up.log" 2>&1 &
  warming=$!
  step tests "$program" test --gtest_output="json:$run/tests.json" --gtest_filter="$tests"
  wait "$warming" || status=$?
  note warm_up "$status" $((SECONDS - started)) "$limit" "${command[*]}"
}

# Runs the step named $1.
run_step() {
  case $1 in
    tests) step_tests ;;
    compare_*) step_compare "$1" ;;
    bench) figures=$run/bench.json step bench "$program" bench --json - ${bench_flags:+"$bench_flags"} ;;
    wide_*)
      # shellcheck disable=SC2086  # several words
      figures=$run/$1.json step "$1" "$program" train wide --device cuda --precision "${1#wide_}" \
        $wide --timeline "$run/$1.pftrace" --json -
      ;;
    facts) figures=$run/facts.json step facts "$program" facts ;;
    traces) step_traces ;;
    timeline)
      figures=$run/timeline.json step timeline "$program" timeline "$run/timeline.pftrace" \
        ${timeline_flags:+"$timeline_flags"}
      ;;
    timeline_cost) step_timeline_cost ;;
    timeline_programs) step_timeline_programs ;;
    memcheck) step_sanitizer memcheck ${held_tests:+"$held_tests"} ;;
    # cuBLAS's kernels are not ours and take many times the time of ours.
    racecheck) step_sanitizer racecheck ${held_tests:+"$held_tests"} 'Gemm.*' ;;
    programs) step_programs ;;
    *) : ;;  # info, warm_up and report are no steps of their own
  esac
}
