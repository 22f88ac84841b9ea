#pragma once

// Times each kernel of kernels/*_cuda on the current device, and the least time that memory or
// arithmetic throughput allows.

#include <string>
#include <vector>

namespace weir::bench {

/// One kernel, on inputs larger than the device's cache.
struct KernelTime {
  std::string name;
  std::string shape;
  double microseconds = 0;  ///< median of the runs, by device events
  double fastest = 0;       ///< fastest run, microseconds
  double bytes = 0;         ///< minimal traffic: each input read once, each output written once
  double flops = 0;         ///< of a matrix product; 0 for memory-bound kernels
  std::string floor_of;     ///< the row whose rate sets the floor: `copy`, `sgemm`, …
  double floor = 0;         ///< microseconds at that rate
  /// Returns median over floor; 1 is as fast as the device's own operation.
  [[nodiscard]] double over_floor() const { return floor > 0 ? microseconds / floor : 0; }
};

/// Returns the current device's name. Throws CudaError if there is none.
[[nodiscard]] std::string device_name();

enum class InputSize {
  kMeasured,  ///< takes some seconds and 4 GiB of device memory
  kSmall,     ///< seconds on a CPU; the times mean nothing
};

/// Times all kernels. The first two rows set the floors: a copy within device memory, and a large
/// square product by cuBLAS. The rows of gpu_precisions.hpp and gpu_updates.hpp come last.
/// Throws CudaError and what the kernels throw.
[[nodiscard]] std::vector<KernelTime> time_kernels(InputSize size);

}  // namespace weir::bench
