#!/usr/bin/env bash
# Takes each wait for a CUDA event out of the code, one at a time, and checks that the tests on the
# stand-in driver notice. Builds as often as there are waits, so no test runs it:
#
#   bash tests/scheduler/device/event_waits.sh [ROOT]     prints one line for each wait, exits 1 if one that
#                                                         is missing was not noticed
set -euo pipefail

root=$(cd -P "${1:-$(dirname "${BASH_SOURCE[0]}")/../../..}" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# file | what stands there (a perl pattern, once in the file) | what stands there instead
waits=(
  'allocator/progress/followed_stream_cuda.cpp|check_cuda\(cudaStreamWaitEvent\(.*?"cudaStreamWaitEvent"\);|(void)event;'
  'allocator/progress/followed_stream_cuda.cpp|if \(work_ == CudaWork::kMarked\) \(void\)push\(nullptr, Clock::now\(\)\);|'
  'allocator/progress/followed_stream_cuda.cpp|const cudaError_t code = events_\.query\(behind->events\.front\(\)\);|const cudaError_t code = cudaSuccess;'
  'allocator/progress/followed_stream_cuda.cpp|\(void\)take_cuda_error\(cudaEventSynchronize\(event\)\);|'
  'allocator/progress/followed_stream_cuda.cpp|\(void\)take_cuda_error\(cudaStreamSynchronize\(stream_\)\);|'
  'allocator/progress/followed_stream_cuda.cpp|const cudaError_t code = take_cuda_error\(cudaStreamSynchronize\(stream_\)\);|const cudaError_t code = cudaSuccess;'
  'scheduler/scheduler.cpp|device_\.drain\(\);|'
  'allocator/progress/progress_cuda.cpp|\(void\)wait\(followed->record\(\), \{\}\);|'
  'allocator/progress/progress_cuda.cpp|for \(Pause pause\(|return true; for (Pause pause('
  'scheduler/device/stream_cuda.cpp|if \(followed_\.await_oldest\(\)\) continue;|'
)

tree=$scratch/tree
mkdir "$tree"
# Not a list from git: a source archive has none.
tar -C "$root" --exclude=./build --exclude=./.git -cf - . | tar -C "$tree" -xf -
cmake -S "$tree" --preset dev -DWEIR_BUILD_BENCH=OFF -DWEIR_INSTALL=OFF >"$scratch/cmake.log"
test=$tree/build/dev/tests/scheduler/device/device_standin_test

# Builds and runs the tests; false when one fails or hangs.
passes() {
  cmake --build "$tree/build/dev" --target device_standin_test >"$scratch/build.log" 2>&1 ||
    { tail -20 "$scratch/build.log" && echo "event_waits: it does not compile" && exit 1; }
  timeout 120 "$test" --gtest_brief=1 >"$scratch/test.log" 2>&1
}

passes || { tail -20 "$scratch/test.log" && echo "event_waits: the tests fail as it is" && exit 1; }

failed=0
for wait in "${waits[@]}"; do
  IFS='|' read -r file pattern instead <<<"$wait"
  before=$(<"$tree/$file")
  PATTERN=$pattern INSTEAD=$instead perl -0pi -e 's/$ENV{PATTERN}/$ENV{INSTEAD}/s' "$tree/$file"
  if [[ $(<"$tree/$file") == "$before" ]]; then
    echo "event_waits: $file has no '$pattern'"
    exit 1
  fi
  if passes; then
    echo "NOT NOTICED  $file: $pattern"
    failed=1
  else
    noticed=$(grep -oE '^\[  FAILED  \] [A-Za-z0-9]+\.[A-Za-z0-9]+' "$scratch/test.log" | sort -u |
      sed 's/.*\] //' | head -3 | paste -sd ' ' || true)
    echo "noticed      $file: $pattern  by ${noticed:-a test that does not end}"
  fi
  printf '%s\n' "$before" >"$tree/$file"
done
exit "$failed"
