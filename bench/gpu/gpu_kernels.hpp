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
/// square product by cuBLAS. The rows of time_precisions, time_updates and time_sparse come last.
/// Throws CudaError and what the kernels throw.
[[nodiscard]] std::vector<KernelTime> time_kernels(InputSize size);

// In the files of these names.

/// What the rows of `time_kernels` have shown, per microsecond.
struct DeviceRates {
  double copied_bytes = 1;
  double float_flops = 1;  ///< of the large float32 product
};

/// Times what mixed precision adds: the three products of a wide network's last layer in each
/// precision, and the kernels that convert, scale and search. A large square product in each
/// further precision comes first and gives its rate; a last layer's floor is the larger of its
/// bytes' and its arithmetic's.
[[nodiscard]] std::vector<KernelTime> time_precisions(InputSize size, DeviceRates rates);

/// Times the updates of the wide network's weights: of its last layer by a gradient, and of its
/// first, whose input is sparse. `copied_bytes` is what a copy moves in a microsecond, read and
/// written: the rate of each row's floor. Takes 3.1 GB of device memory.
[[nodiscard]] std::vector<KernelTime> time_updates(InputSize size, double copied_bytes);

/// Times the sparse layer and the losses with sparse labels, at the size of `weir-train wide`.
/// Their floors are the bytes that each must move at the rate of a copy. kMeasured takes some 1.7
/// GiB of device memory. Throws CudaError and what the kernels throw.
[[nodiscard]] std::vector<KernelTime> time_sparse(InputSize size,
                                                  double copied_bytes_per_microsecond);

}  // namespace weir::bench
