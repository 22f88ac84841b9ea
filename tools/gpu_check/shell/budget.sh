# The time that everything may take, so that each call ends within eight minutes. One table, one
# rule.
# shellcheck shell=bash disable=SC2034  # for tools/gpu-check

# What tools/gpu-check runs by default, in this order.
steps=(tests compare_x1_drawn compare_x1_ring compare_x16_drawn compare_x16_ring bench wide_float32
  wide_tf32 facts traces timeline timeline_cost timeline_programs memcheck racecheck)

# Guaranteed seconds of each part of a call. Those of a call must add up to at most limit_s:
# --dry-run checks it. From some to three times what an H100 took (docs/gpu-check.md).
declare -A share=(
  [info]=25
  [tests]=50
  [compare_x1_drawn]=30
  [compare_x1_ring]=40
  [compare_x16_drawn]=40
  [compare_x16_ring]=40
  [bench]=15
  [wide_float32]=10
  [wide_tf32]=10
  [facts]=15
  [traces]=20
  [timeline]=8
  [timeline_cost]=20
  [timeline_programs]=25
  [memcheck]=50
  [racecheck]=60
  [warm_up]=45
  [programs]=380
  [report]=10
)
limit_s=470  # eight minutes, but for what ends a step that would not end

# A part that hangs ends at this many times its share.
most=3
# Seconds of the programs' share for writing down their results.
programs_margin=5

# Prints how many seconds a step with share $1 may take when $2 are left of the call and the later
# parts have $3 guaranteed. Each step has its share and may use what earlier ones left over.
# tools/gpu_check/programs/plan.py has the same rule for the runs of programs.
allowance() {
  local seconds=$1 left=$2 after=$3
  if ((left - after > seconds)); then seconds=$((left - after)); fi
  if ((seconds > most * $1)); then seconds=$((most * $1)); fi
  if ((seconds > left)); then seconds=$left; fi
  echo "$((seconds > 0 ? seconds : 0))"
}

# Prints the sum of the shares of the parts "$@".
shares() {
  local name sum=0
  for name; do
    sum=$((sum + share[$name]))
  done
  echo "$sum"
}

# Prints a line for each part "$2"... of the call $1, and the sum. Fails if it exceeds the limit.
dry_run_call() {
  local call=$1 name sum
  shift
  sum=$(shares "$@")
  echo "$call"
  for name; do
    printf '  %-22s %4d s\n' "$name" "${share[$name]}"
  done
  printf '  %-22s %4d s of %d\n' together "$sum" "$limit_s"
  ((sum <= limit_s)) || too_much
}

# Prints the share of the programs of call $1. Fails if it exceeds the step's or is unknown.
dry_run_programs() {
  local name runs seconds sum=0 most_s=$((share[programs] - programs_margin)) plan
  plan=$("$python" -B tools/gpu_check/programs/run_all.py --plan "$1") || plan=
  while read -r name runs seconds; do
    if [[ ! $seconds =~ ^[1-9][0-9]*$ ]]; then
      echo "tools/gpu-check: cannot read the plan of the programs with $python" >&2
      return 1
    fi
    printf '    %-20s %4d s, %d runs\n' "$name" "$seconds" "$runs"
    sum=$((sum + seconds))
  done <<<"$plan"
  printf '    %-20s %4d s of %d\n' together "$sum" "$most_s"
  ((sum <= most_s)) || too_much
}

# Reports that a call does not fit, and fails.
too_much() {
  echo "tools/gpu-check: that is more than a call has" >&2
  return 1
}

# Prints the arithmetic of the calls. Fails if one does not fit.
dry_run() {
  local half status=0
  dry_run_call "tools/gpu-check" info "${steps[@]}" report || status=1
  for half in first second plug; do
    dry_run_call "tools/gpu-check --programs $half" info warm_up programs report || status=1
    dry_run_programs "$half" || status=1
  done
  return "$status"
}
