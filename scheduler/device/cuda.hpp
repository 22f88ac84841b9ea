#pragma once

/// @file
/// CUDA for programs without CUDA headers. In a build without the toolkit the functions exist and
/// report that.

#include <memory>
#include <string>

#include "scheduler/device/device.hpp"

namespace weir {

/// Whether this machine has a GPU that this build can use.
struct CudaAnswer {
  int devices = 0;     ///< number of usable GPUs
  std::string name{};  ///< of the first GPU
  std::string why{};   ///< if there is none: one line with the reason and what to do
};
/// Asks the driver. Takes no device memory. Thread-safe.
[[nodiscard]] CudaAnswer find_cuda();

/// The device that `auto` selects.
struct DefaultDevice {
  std::string name;  ///< `cuda` if there is a usable GPU, otherwise `cpu`
  std::string why;   ///< for people: the GPU's name, or why there is none
};
/// Asks the driver. Thread-safe.
[[nodiscard]] DefaultDevice default_device();

/// Opens GPU number `ordinal`. Throws UsageError (one line with what to do) if there is no driver,
/// it is too old, the device does not exist, or this build has no CUDA.
[[nodiscard]] std::unique_ptr<DeviceBackend> open_cuda_device(int ordinal,
                                                              const DeviceOptions& options);

/// Returns the total memory of GPU number `ordinal`. UsageError as above.
[[nodiscard]] Bytes cuda_memory(int ordinal);

}  // namespace weir
