# Builds what is carried to the machine with the GPU. For tools/gpu-check.
# shellcheck shell=bash disable=SC2154

# The most bytes of the tree and the four files together.
carried_most=64000000

# Prints what is missing here to build the program; nothing if all is there.
missing_to_build() {
  local name compiler=${CXX:-c++}
  for name in "$compiler" cmake ninja "${toolkit:+$toolkit/bin/}nvcc" pkg-config; do
    command -v "$name" >/dev/null || echo "$name"
  done
  command -v "$compiler" >/dev/null || return 0
  for name in gmock/gmock.h CLI/CLI.hpp nlohmann/json.hpp jemalloc/jemalloc.h; do
    "$compiler" -x c++ -E -include "$name" /dev/null >/dev/null 2>&1 || echo "$name"
  done
  for name in libopenblas.a libgmock.a libgtest.a libz.a; do
    [[ $("$compiler" -print-file-name="$name") == */* ]] || echo "$name"
  done
}

build() {
  local missing folder=${program%/*} with=()
  missing=$(missing_to_build)
  if [[ -n $missing ]]; then
    fail "$program is not here and cannot be built here, for want of: ${missing//$'\n'/, };" \
      "build it with tools/gpu-check --build where these are (no GPU needed), and copy it here"
  fi
  # Full paths: for names without one, CMake would search another toolkit's parts.
  if [[ -n $toolkit ]]; then
    with=(-B "$folder" "-DCMAKE_CUDA_COMPILER=$toolkit/bin/nvcc" "-DCUDAToolkit_ROOT=$toolkit")
  fi
  {
    cmake --preset portable "${with[@]}"
    cmake --build "$folder" --target weir-gpu
    tools/gpu_check/portable_check "$carried_most" . \
      "$program" "$folder/weir" "$folder/libweir.so" "$folder/libweir_timeline.so"
    # Beside libweir.so, which finds it there. It needs what PyTorch brings.
    if [[ -n $torch ]]; then tools/torch/build --output "$folder" "$torch"; fi
    echo "built in $SECONDS s"
  } >&2
}
