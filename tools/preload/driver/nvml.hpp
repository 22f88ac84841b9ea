#pragma once

// The management library (NVML) behind the hooks: what a device has left before a program has a
// context on it, and which device of CUDA one of its handles is.

#include <optional>

#include "allocator/base/bytes.hpp"
#include "tools/preload/driver/driver.hpp"
#include "tools/preload/driver/nvml_api.hpp"

namespace weir::preload {

/// Its own functions. Each is null where the library is too old to have it.
struct Nvml {
  // NOLINTBEGIN(readability-identifier-naming): the library's names
  int (*nvmlInit_v2)() = nullptr;
  int (*nvmlDeviceGetHandleByPciBusId_v2)(const char* bus, void** device) = nullptr;
  int (*nvmlDeviceGetPciInfo_v3)(void* device, NvmlPciInfo* info) = nullptr;
  int (*nvmlDeviceGetUUID)(void* device, char* text, unsigned size) = nullptr;
  // NOLINTEND(readability-identifier-naming)
#define NVML_HOOK(symbol, what) decltype(&::symbol) symbol = nullptr;
#include "tools/preload/driver/nvml_hooks.inc"
};

/// The library, once the program has it; null before. Never loads it. Thread-safe.
[[nodiscard]] const Nvml* nvml() noexcept;

/// The CUDA device that is meant by a handle of the library: the one of the same UUID, or where one
/// side has none to tell, of the same place on the bus. Never by number: CUDA_VISIBLE_DEVICES
/// numbers CUDA's alone. A part of a device (MIG) has a UUID of its own (unverified). Nothing where
/// CUDA does not show it. Thread-safe.
[[nodiscard]] std::optional<CUdevice> cuda_device_of(const Nvml& nvml, void* device,
                                                     const Driver& driver) noexcept;

/// What a device has left before a program has a context on it, when the driver does not say yet:
/// as the management library says, which is loaded for that; nothing where it is not there or does
/// not know the device. Of all programs together. Thread-safe.
[[nodiscard]] std::optional<Bytes> free_without_context(const Driver& driver,
                                                        CUdevice device) noexcept;

}  // namespace weir::preload
