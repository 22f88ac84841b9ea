#include "kernels/parts/launch_cuda.hpp"
#include "tools/gpu_check/facts/spin_cuda.hpp"

namespace weir::gpu_check {
namespace {

/// The device's real-time clock, and one multiprocessor's cycle counter.
struct SpinClock {
  unsigned long long nanoseconds;
  unsigned long long cycles;
};

__device__ inline SpinClock read_clock() {
#if defined(WEIR_LAUNCH_IS_EMULATED)
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return {static_cast<unsigned long long>(std::chrono::nanoseconds(now).count()), 0};
#else
  unsigned long long nanoseconds = 0;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(nanoseconds));
  return {nanoseconds, static_cast<unsigned long long>(clock64())};
#endif
}

/// Also ends by cycles, in case the real-time clock stands still: no device is faster than 4 GHz.
__global__ void spin_kernel(unsigned long long nanoseconds) {
  const SpinClock start = read_clock();
  SpinClock now = start;
  while (now.nanoseconds - start.nanoseconds < nanoseconds &&
         now.cycles - start.cycles < 4 * nanoseconds) {
    now = read_clock();
  }
}

}  // namespace

void spin(cudaStream_t stream, std::chrono::nanoseconds time) {
  cuda::launch("spin", spin_kernel, cuda::Grid{.blocks = 1, .threads = 1}, stream,
               static_cast<unsigned long long>(time.count()));
}

}  // namespace weir::gpu_check
