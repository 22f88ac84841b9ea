#pragma once

// Times one kernel and sets its floor.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "bench/gpu/gpu_kernels.hpp"
#include "bench/gpu/gpu_timer_cuda.hpp"
#include "tools/program/median.hpp"

namespace weir::bench {

/// Returns the times of `runs` runs of what `enqueue` enqueues, without a floor.
template <typename Enqueue>
[[nodiscard]] KernelTime timed_kernel(GpuTimer& timer, std::string name, std::string shape,
                                      int runs, const Enqueue& enqueue) {
  const std::vector<double> times = timer.runs(enqueue, runs);
  KernelTime time;
  time.name = std::move(name);
  time.shape = std::move(shape);
  time.microseconds = median(times);
  time.fastest = std::ranges::min(times);
  return time;
}

/// Sets the floor of a memory-bound kernel: its bytes at the rate of a copy.
inline void bound_by_memory(KernelTime& time, double bytes, double copied_bytes_per_microsecond) {
  time.bytes = bytes;
  time.floor_of = "copy";
  time.floor = bytes / copied_bytes_per_microsecond;
}

}  // namespace weir::bench
