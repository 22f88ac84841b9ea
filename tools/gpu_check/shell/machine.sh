# What of this machine the steps use. For tools/gpu-check.
# shellcheck shell=bash disable=SC2154

# Where the toolkit's own libraries usually are.
toolkit_libraries=/usr/local/cuda/lib64

# The search path of libraries for our own programs. Programs that know nothing of Weir get the
# machine's, since another cuBLAS than their framework's would be another program.
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

# Runs "$@", a program of ours. Settings that change what a GPU computes, or how fast, are for unmodified
# programs alone, which are compared with themselves. `weir-gpu info` notes them.
own() {
  local name
  for name in "${!CUBLAS_@}" NVIDIA_TF32_OVERRIDE CUDA_LAUNCH_BLOCKING; do
    unset "$name"
  done
  LD_LIBRARY_PATH=$library_path exec "$@"
}

# Prints the program to run: $1, or where the driver is too old for it the one that was built with an
# older toolkit (--toolkit), which lies in the folder of the same name with -12.
for_this_driver() {
  local newer=$1 older=${1%/*}-12/${1##*/}
  # shellcheck disable=SC2329  # below
  answers() { LD_LIBRARY_PATH=$library_path timeout -k 5 "${share[info]}" "$1" info >/dev/null 2>&1; }
  if [[ -x $older ]] && ! answers "$newer" && answers "$older"; then
    echo "$older"
  else
    echo "$newer"
  fi
}

# Asks the GPU what it is, into info.json. Ends the run where there is none.
ask_machine() {
  local why built here
  if ! LD_LIBRARY_PATH=$library_path timeout -k 5 "${share[info]}" "$program" info --json \
    >"$run/info.json" 2>"$run/info.log"; then
    why=$(head -n 1 "$run/info.log")
    why=${why#weir-gpu info: }
    fail "${why:-$program info failed and does not say why}"
  fi
  cat "$run/info.log" >&2
  built=$(sed -n 's/^ *"commit": "\(.*\)",\{0,1\}$/\1/p' "$run/info.json")
  here=$(git describe --always --dirty 2>/dev/null || echo unknown)
  if [[ $here != unknown && $here != "$built" ]]; then
    echo "tools/gpu-check: note: $program is of commit $built, this tree of $here" >&2
  fi
}
