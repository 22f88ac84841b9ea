// A stand-in for the parts of the management library (libnvidia-ml.so.1) about devices and their
// memory. It asks the stand-in driver for the memory in use. Each device has 1 TiB here, more than
// any there, and another process that uses 7 MiB.

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tools/preload/driver/nvml_api.hpp"

namespace {

constexpr int kInvalid = 2;
constexpr int kNotSupported = 3;
constexpr int kNotFound = 6;
constexpr int kInsufficientSize = 7;
constexpr int kFunctionNotFound = 13;
constexpr int kVersionMismatch = 25;
constexpr unsigned long long kTotal = 1ULL << 40U;
constexpr unsigned long long kReserved = 1ULL << 20U;
constexpr unsigned long long kOthers = 7ULL << 20U;
/// In the handle of a part of a device.
constexpr std::uintptr_t kPart = 0x100;

bool is_on(const char* variable) {
  const char* const text = std::getenv(variable);
  return text != nullptr && text[0] == '1';
}
bool is_in_parts() { return is_on("WEIR_STANDIN_MIG"); }

unsigned devices() {
  const char* const text = std::getenv("WEIR_STANDIN_DEVICES");
  return text != nullptr ? static_cast<unsigned>(std::atoi(text)) : 1;
}

unsigned number_of(void* device) {
  return static_cast<unsigned>((reinterpret_cast<std::uintptr_t>(device) & ~kPart) - 1);
}
bool is_part(void* device) { return (reinterpret_cast<std::uintptr_t>(device) & kPart) != 0; }
void* handle_of(unsigned number) { return reinterpret_cast<void*>(std::uintptr_t{number} + 1); }

/// The memory in use of a device, zero if no driver is loaded; or a code.
int ask_used(void* device, unsigned long long& bytes) {
  void* const driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  bytes = 0;
  if (driver == nullptr) return 0;
  using Used = std::size_t (*)(int);
  const auto used = reinterpret_cast<Used>(dlsym(driver, "weir_standin_used"));
  dlclose(driver);
  if (used == nullptr) return kFunctionNotFound;
  bytes = used(static_cast<int>(number_of(device)));
  return 0;
}

template <typename Info>
int list_processes(void* device, unsigned* count, Info* processes) {
  constexpr unsigned kProcesses = 2;
  unsigned long long used = 0;
  if (count == nullptr) return kInvalid;
  const bool fits = processes != nullptr && *count >= kProcesses;
  *count = kProcesses;
  if (!fits) return kInsufficientSize;
  if (const int code = ask_used(device, used); code != 0) return code;
  processes[0] = {};
  processes[0].pid = 1;
  processes[0].used = kOthers;
  processes[1] = {};
  processes[1].pid = static_cast<unsigned>(getpid());
  processes[1].used = used;
  return 0;
}

}  // namespace

extern "C" {

int nvmlInit() { return 0; }
int nvmlInit_v2() { return 0; }
int nvmlInitWithFlags(unsigned /*flags*/) { return 0; }
int nvmlShutdown() { return 0; }
const char* nvmlErrorString(int code) { return code == 0 ? "Success" : "an error"; }

int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = devices();
  return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  if (index >= devices()) return kInvalid;
  const bool reversed = is_on("WEIR_STANDIN_NVML_REVERSED");
  *device = handle_of(reversed ? devices() - 1 - index : index);
  return 0;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char* bus, void** device) {
  unsigned domain = 0;  // four digits as CUDA writes it, eight as PyTorch does
  unsigned number = 0;
  if (std::sscanf(bus, "%x:%x:00.0", &domain, &number) != 2 || domain != 0) return kInvalid;
  *device = handle_of(number);
  return 0;
}

int nvmlDeviceGetPciInfo_v3(void* device, NvmlPciInfo* info) {
  *info = {};
  info->bus = number_of(device);
  std::snprintf(info->legacy_bus_id, sizeof info->legacy_bus_id, "0000:%02X:00.0", info->bus);
  std::snprintf(info->bus_id, sizeof info->bus_id, "00000000:%02X:00.0", info->bus);
  return 0;
}

// As the driver's cuDeviceGetUuid; for a device in parts, that is its part's.
int nvmlDeviceGetUUID(void* device, char* text, unsigned size) {
  if (is_on("WEIR_STANDIN_NVML_NO_UUID")) return kNotSupported;
  if (size < 41) return kInsufficientSize;
  const bool whole = is_in_parts() && !is_part(device);
  std::snprintf(text, size, "%s-%02x000000-0000-0000-0000-0000000000%s",
                is_part(device) ? "MIG" : "GPU", number_of(device) + 1, whole ? "ff" : "00");
  return 0;
}

int nvmlDeviceGetMemoryInfo(void* device, NvmlMemory* memory) {
  unsigned long long used = 0;
  if (const int code = ask_used(device, used); code != 0) return code;
  *memory = {.total = kTotal, .free = kTotal - used, .used = used};
  return 0;
}

int nvmlDeviceGetMemoryInfo_v2(void* device, NvmlMemoryV2* memory) {
  if (memory->version != (sizeof *memory | 2U << 24U)) return kVersionMismatch;
  unsigned long long used = 0;
  if (const int code = ask_used(device, used); code != 0) return code;
  *memory = {.version = memory->version,
             .total = kTotal,
             .reserved = kReserved,
             .free = kTotal - kReserved - used,
             .used = used};
  return 0;
}

int nvmlDeviceGetBAR1MemoryInfo(void* /*device*/, NvmlMemory* memory) {
  *memory = {.total = 256ULL << 20U, .free = 255ULL << 20U, .used = 1ULL << 20U};
  return 0;
}

int nvmlDeviceGetComputeRunningProcesses(void* device, unsigned* count, NvmlProcessV1* processes) {
  return list_processes(device, count, processes);
}
int nvmlDeviceGetComputeRunningProcesses_v2(void* device, unsigned* count, NvmlProcess* processes) {
  return list_processes(device, count, processes);
}
int nvmlDeviceGetComputeRunningProcesses_v3(void* device, unsigned* count, NvmlProcess* processes) {
  return list_processes(device, count, processes);
}

// In MIG mode a device has two places for parts. One is used, with all of the device's memory.
int nvmlDeviceGetMigMode(void* /*device*/, unsigned* current, unsigned* pending) {
  *current = is_in_parts() ? 1 : 0;
  *pending = *current;
  return 0;
}
int nvmlDeviceGetMaxMigDeviceCount(void* /*device*/, unsigned* count) {
  *count = is_in_parts() ? 2 : 0;
  return 0;
}
int nvmlDeviceGetMigDeviceHandleByIndex(void* device, unsigned index, void** part) {
  if (!is_in_parts() || index != 0) return kNotFound;
  *part = reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(device) | kPart);
  return 0;
}

// Not simulated, but a library that looks up all its functions at once (PyTorch's libc10_cuda.so)
// needs them to exist.
int nvmlDeviceGetNvLinkRemoteDeviceType() { return kNotSupported; }
int nvmlDeviceGetNvLinkRemotePciInfo_v2() { return kNotSupported; }
int nvmlSystemGetCudaDriverVersion_v2() { return kNotSupported; }

}  // extern "C"
