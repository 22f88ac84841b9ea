// A program that uses CUDA in batches until it is interrupted. It knows nothing of Weir except the
// marks of its batches, which do nothing without Weir.

#include <cuda_runtime_api.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>

#include "tools/preload/borders/weir.h"

namespace {

volatile std::sig_atomic_t interrupted = 0;

/// A batch: memory in stream order, set to zero by the device.
bool run_batch(cudaStream_t stream) {
  constexpr std::size_t kBytes = std::size_t{1} << 20;
  void* memory = nullptr;
  return cudaMallocAsync(&memory, kBytes, stream) == cudaSuccess &&
         cudaMemsetAsync(memory, 0, kBytes, stream) == cudaSuccess &&
         cudaFreeAsync(memory, stream) == cudaSuccess;
}

}  // namespace

int main() {
  constexpr std::size_t kKept = std::size_t{3} << 20;
  constexpr unsigned kPauseUs = 2000;  // leaves the machine to others
  (void)std::signal(SIGINT, [](int) { interrupted = 1; });
  void* kept = nullptr;
  cudaStream_t stream = nullptr;
  if (cudaMalloc(&kept, kKept) != cudaSuccess) return 1;
  if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess) return 1;
  while (interrupted == 0) {
    (void)weir_batch_begin("train");
    const bool good = run_batch(stream);
    weir_batch_end();
    if (!good) return 1;
    usleep(kPauseUs);
  }
  return cudaStreamSynchronize(stream) == cudaSuccess ? 0 : 1;
}
