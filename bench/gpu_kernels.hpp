#pragma once

// How long each kernel of kernels/*_cuda takes on the current device, beside the least that its
// memory or its multipliers allow.

#include <string>
#include <vector>

namespace weir::bench {

/// One kernel on inputs that exceed the device's cache.
struct KernelTime {
  std::string name;
  std::string shape;
  double microseconds = 0;  ///< the median of the runs, by the device's own events
  double fastest = 0;       ///< the fastest of them, microseconds
  double bytes = 0;         ///< that must move: each input read once, each output written once
  double flops = 0;         ///< of a product; 0 for what memory bounds
  std::string floor_of;     ///< the row whose rate gives the floor: `copy` or `sgemm`
  double floor = 0;         ///< microseconds that the work takes at that rate
  /// Median over floor; 1 is as good as the device's own.
  [[nodiscard]] double over_floor() const { return floor > 0 ? microseconds / floor : 0; }
};

/// The name of the current device. Throws CudaError when there is none.
[[nodiscard]] std::string device_name();

enum class InputSize {
  kMeasured,  ///< takes some seconds and 2 GiB of device memory
  kSmall,     ///< a CPU computes them in seconds; the times say nothing
};

/// Times everything. The first two rows are the floors: a copy from device memory to device memory,
/// and a large square product by cuBLAS. Throws CudaError and what the kernels throw.
[[nodiscard]] std::vector<KernelTime> time_kernels(InputSize size);

}  // namespace weir::bench
