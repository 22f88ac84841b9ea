# What the steps use of this machine. For tools/gpu-check.
# shellcheck shell=bash disable=SC2154

# The usual folder of the toolkit's own libraries.
toolkit_libraries=/usr/local/cuda/lib64

# Prints the library search path of our own programs. Unmodified programs get the machine's: with
# another cuBLAS than their framework's they would be another program.
own_library_path() {
  local folder path=${LD_LIBRARY_PATH:-}
  while read -r folder; do
    path=${path:+$path:}$folder
  done < <(
    if [[ -d $toolkit_libraries ]]; then echo "$toolkit_libraries"; fi
    timeout -k 1 10 "$python" -B tools/gpu_check/python_libraries.py 2>/dev/null || true
  )
  echo "$path"
}

# Runs "$@", a program of ours. Removes settings that change a GPU's results or speed: they are only
# for unmodified programs, which are compared with themselves. `weir-gpu info` notes them.
own() {
  local name
  for name in "${!CUBLAS_@}" NVIDIA_TF32_OVERRIDE CUDA_LAUNCH_BLOCKING; do
    unset "$name"
  done
  LD_LIBRARY_PATH=$library_path exec "$@"
}

# Asks the program $1 about the GPU, for at most $2 seconds, into info.json. Sets `why` on failure.
ask() {
  local status=0
  # For timeout, 0 is no limit. In the background, so that a signal ends it at once.
  LD_LIBRARY_PATH=$library_path timeout -k 5 "$(($2 > 0 ? $2 : 1))" "$1" info --json - \
    </dev/null >"$run/info.json" 2>"$run/info.log" &
  wait $! || status=$?
  case $status in
    0) return ;;
    124 | 137) why="$1 info took too long: stopped after $2 s" ;;
    *)
      why=$(head -n 1 "$run/info.log")
      why=${why#weir-gpu info: }
      why=${why:-$1 info failed and does not say why}
      ;;
  esac
  return 1
}

# Asks about the GPU. If $program is missing or the driver is too old for it, $program becomes the
# one built with an older toolkit (--toolkit), in the folder of the same name with -12. Ends the
# call if there is no GPU. A call without an answer is useless, so this may use the other parts'
# time.
ask_machine() {
  local why first built here until older=${program%/*}-12/${program##*/}
  until=$((SECONDS + $(allowance "${share[info]}" $((deadline - SECONDS)) 0)))
  if [[ -x $older && ! -x $program ]]; then program=$older; fi
  if ! ask "$program" $((until - SECONDS)); then
    first=$why
    if [[ ! -x $older || $older == "$program" ]] || ! ask "$older" $((until - SECONDS)); then
      fail "$first"
    fi
    program=$older
  fi
  cat "$run/info.log" >&2
  built=$(sed -n 's/^ *"commit": "\(.*\)",\{0,1\}$/\1/p' "$run/info.json")
  here=$(git describe --always --dirty 2>/dev/null || echo unknown)
  if [[ $here != unknown && $here != "$built" ]]; then
    echo "tools/gpu-check: note: $program is of commit $built, this tree of $here" >&2
  fi
}
