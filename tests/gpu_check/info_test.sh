#!/usr/bin/env bash
# Checks that weir-gpu, on the stand-in in folder $1 (build/dev/rehearsal), says which cuBLAS it opens
# and where it looked for one, and what of this environment changes the figures.
set -euo pipefail
root=$2
machine=$1/machine
unset CUDA_PATH CUDA_HOME
failed=0

# Runs info with the settings "$2"..., which must say $1.
says() {
  local words=$1 found
  shift
  found=$(env LD_LIBRARY_PATH="$machine" "$@" "${machine%/*}/weir-gpu" info)
  [[ $found == *"$words"* ]] || { echo "info: wrong: there is no '$words' in: $found" && failed=1; }
}

# A machine whose cuBLAS is in the packages of its Python alone.
folder=$(PYTHONPATH=$1/site-packages python3 -B "$root/tools/gpu_check/python_libraries.py" | head -n 1)
[[ $folder == */site-packages/nvidia/cu*/lib ]] || { echo "info: wrong: not found: $folder" && failed=1; }
says " in $folder/libcublas.so." "LD_LIBRARY_PATH=$machine:$folder"
says 'cuBLAS 1' "LD_LIBRARY_PATH=$machine:$folder"
# One that cannot be opened, since this machine may have another that can.
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
for file in "$1"/site-packages/nvidia/cu*/lib/libcublas.so.*; do
  touch "$scratch/${file##*/}"
done
says 'no cuBLAS: ' "LD_LIBRARY_PATH=$machine:$scratch"
says "LD_LIBRARY_PATH (now '$machine:$scratch')" "LD_LIBRARY_PATH=$machine:$scratch"
says 'ignored by our own tests: NVIDIA_TF32_OVERRIDE=0' NVIDIA_TF32_OVERRIDE=0
says 'ignored by our own tests: CUBLAS_EMULATE_SINGLE_PRECISION=1' CUBLAS_EMULATE_SINGLE_PRECISION=1
says 'a rehearsal' A=B

# A driver too old for the runtime that this was built with.
status=0
why=$(WEIR_STANDIN_DRIVER_VERSION=11080 LD_LIBRARY_PATH=$machine "${machine%/*}/weir-gpu" info 2>&1) || status=$?
if [[ $status != 2 || $why != *'the driver serves CUDA 11.8, and this program needs 1'*'--toolkit DIR'* ]]; then
  echo "info: wrong: exit code $status of a driver of 11.8: $why" && failed=1
fi
exit "$failed"
