// A stand-in for the management library (libnvidia-ml.so.1), as far as it tells what a device has
// left to a program that has no context there yet. It asks the stand-in driver.

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace {
constexpr int kNotSupported = 3;  // NVML_ERROR_NOT_SUPPORTED
constexpr int kNotFound = 6;      // NVML_ERROR_NOT_FOUND

bool is_in_parts() {
  const char* const text = std::getenv("WEIR_STANDIN_MIG");
  return text != nullptr && text[0] == '1';
}
}  // namespace

extern "C" {

struct NvmlMemory {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};

int nvmlInit_v2() { return 0; }

int nvmlDeviceGetHandleByPciBusId_v2(const char* bus, void** device) {
  unsigned number = 0;
  if (std::sscanf(bus, "0000:%x:00.0", &number) != 1) return 2;
  *device = reinterpret_cast<void*>(std::uintptr_t{number} + 1);
  return 0;
}

int nvmlDeviceGetMemoryInfo(void* device, NvmlMemory* memory) {
  void* const driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (driver == nullptr) return 9;
  using Used = std::size_t (*)(int);
  const auto used = reinterpret_cast<Used>(dlsym(driver, "weir_standin_used"));
  dlclose(driver);
  if (used == nullptr) return 13;
  memory->used = used(static_cast<int>(reinterpret_cast<std::uintptr_t>(device)) - 1);
  memory->total = 1ULL << 40U;  // only differences are looked at
  memory->free = memory->total - memory->used;
  return 0;
}

// In MIG mode a device has two places for parts. One is used, and its memory is all of the
// device's.
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
  *part = device;
  return 0;
}

// Not imitated, but a library that takes all that it may call at once (PyTorch's libc10_cuda.so)
// wants them to be there.
int nvmlDeviceGetNvLinkRemoteDeviceType() { return kNotSupported; }
int nvmlDeviceGetNvLinkRemotePciInfo_v2() { return kNotSupported; }
int nvmlDeviceGetComputeRunningProcesses() { return kNotSupported; }
int nvmlSystemGetCudaDriverVersion_v2() { return kNotSupported; }

}  // extern "C"
