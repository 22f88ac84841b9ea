#pragma once

/// @file
/// What programs ask of CUDA without its headers. Without a toolkit at build time the functions are
/// there all the same and say so.

#include <memory>
#include <string>

#include "scheduler/device/device.hpp"

namespace weir {

/// Whether this machine has a GPU that this build can use.
struct CudaAnswer {
  int devices = 0;     ///< how many answer
  std::string name{};  ///< of the first
  std::string why{};   ///< when none does: one line with the reason and what to do
};
/// Asks the driver. Does not throw, takes no device memory. Thread-safe.
[[nodiscard]] CudaAnswer find_cuda();

/// The device that `auto` stands for.
struct DefaultDevice {
  std::string name;  ///< `cuda` when a GPU answers, `cpu` otherwise
  std::string why;   ///< for people: the GPU's name, or why there is none
};
/// Asks the driver. Thread-safe.
[[nodiscard]] DefaultDevice default_device();

/// Opens GPU number `ordinal`. UsageError, one line with what to do, where there is no driver, one
/// too old, no such device, or where this build has no CUDA.
[[nodiscard]] std::unique_ptr<DeviceBackend> open_cuda_device(int ordinal,
                                                              const DeviceOptions& options);

/// All of the memory of GPU number `ordinal`. UsageError as above.
[[nodiscard]] Bytes cuda_memory(int ordinal);

/// The number in `cuda:N`, 0 for `cuda`; -1 when `name` names no GPU.
[[nodiscard]] int cuda_ordinal(std::string_view name) noexcept;

}  // namespace weir
