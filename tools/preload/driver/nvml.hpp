#pragma once

// The management library (NVML) behind the hooks: a device's free memory before a context exists,
// and which CUDA device an NVML handle is.

#include <optional>

#include "allocator/base/bytes.hpp"
#include "tools/preload/driver/driver.hpp"
#include "tools/preload/driver/nvml_api.hpp"

namespace weir::preload {

/// NVML's own functions. Null if the library is too old to have one.
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

/// Returns the library once the program has it; null before. Never loads it. Thread-safe.
[[nodiscard]] const Nvml* nvml() noexcept;

/// Returns the CUDA device of an NVML handle: the one with the same UUID, or the same PCI location
/// if one side has no UUID. Never by number, because CUDA_VISIBLE_DEVICES renumbers only CUDA's. A
/// MIG part has its own UUID (unverified). Returns nothing if CUDA does not show the device.
/// Thread-safe.
[[nodiscard]] std::optional<CUdevice> cuda_device_of(const Nvml& nvml, void* device,
                                                     const Driver& driver) noexcept;

/// Returns the device's free memory, over all programs, before this program has a context on it,
/// when the driver cannot say yet. Loads NVML for that; nothing if it is missing or does not know
/// the device. Thread-safe.
[[nodiscard]] std::optional<Bytes> free_without_context(const Driver& driver,
                                                        CUdevice device) noexcept;

}  // namespace weir::preload
