#pragma once

// The parts of NVML that the swap-in calls or hooks. The toolkit may lack its header, so types and
// codes are copied from the documentation.

extern "C" {

// NOLINTBEGIN(readability-identifier-naming): the names are the library's
struct NvmlMemory {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};
struct NvmlMemoryV2 {
  unsigned version;  ///< set by the caller: 2, with the structure's size
  unsigned long long total;
  unsigned long long reserved;  ///< by the system
  unsigned long long free;
  unsigned long long used;  ///< without `reserved`
};
struct NvmlProcessV1 {
  unsigned pid;
  unsigned long long used;
};
struct NvmlProcess {  ///< of _v2 and _v3
  unsigned pid;
  unsigned long long used;
  unsigned gpu_instance;
  unsigned compute_instance;
};
struct NvmlPciInfo {  ///< of _v3
  char legacy_bus_id[16];
  unsigned domain;
  unsigned bus;
  unsigned device;
  unsigned device_id;
  unsigned subsystem_id;
  char bus_id[32];
};

int nvmlDeviceGetMemoryInfo(void* device, NvmlMemory* memory);
int nvmlDeviceGetMemoryInfo_v2(void* device, NvmlMemoryV2* memory);
int nvmlDeviceGetComputeRunningProcesses(void* device, unsigned* count, NvmlProcessV1* processes);
int nvmlDeviceGetComputeRunningProcesses_v2(void* device, unsigned* count, NvmlProcess* processes);
int nvmlDeviceGetComputeRunningProcesses_v3(void* device, unsigned* count, NvmlProcess* processes);
// NOLINTEND(readability-identifier-naming)
}

namespace weir::preload {

inline constexpr int kNvmlSuccess = 0;
inline constexpr int kNvmlUninitialized = 1;
inline constexpr int kNvmlFunctionNotFound = 13;

}  // namespace weir::preload
