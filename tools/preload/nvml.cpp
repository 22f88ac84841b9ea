#include "tools/preload/nvml.hpp"

#include <dlfcn.h>
#include <pthread.h>

#include <array>
#include <cstring>

namespace weir::preload {
namespace {

/// nvmlMemory_t of the management library's documentation.
struct NvmlMemory {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};

struct Nvml {
  int (*init)() = nullptr;
  int (*by_bus)(const char* bus, void** device) = nullptr;
  int (*memory)(void* device, NvmlMemory* memory) = nullptr;
  bool good = false;
};
constinit Nvml nvml;
constinit pthread_once_t nvml_once = PTHREAD_ONCE_INIT;

template <typename F>
bool find(void* library, const char* name, F& function) noexcept {
  void* const address = real_dlsym(library, name);
  std::memcpy(&function, &address, sizeof address);
  return address != nullptr;
}

void load() noexcept {
  // Kept: it may have threads of its own.
  void* const library = dlopen("libnvidia-ml.so.1", RTLD_LAZY | RTLD_LOCAL);
  nvml.good = library != nullptr && find(library, "nvmlInit_v2", nvml.init) &&
              find(library, "nvmlDeviceGetHandleByPciBusId_v2", nvml.by_bus) &&
              find(library, "nvmlDeviceGetMemoryInfo", nvml.memory) && nvml.init() == 0;
  (void)dlerror();  // the program's next question must not meet our failure
}

}  // namespace

std::optional<Bytes> free_without_context(const Driver& driver, CUdevice device) noexcept {
  pthread_once(&nvml_once, &load);
  std::array<char, 32> bus{};
  void* handle = nullptr;
  NvmlMemory memory{};
  const bool known = nvml.good && driver.cuDeviceGetPCIBusId != nullptr &&
                     driver.cuDeviceGetPCIBusId(bus.data(), static_cast<int>(bus.size()), device) ==
                         CUDA_SUCCESS &&
                     nvml.by_bus(bus.data(), &handle) == 0 && nvml.memory(handle, &memory) == 0;
  return known ? std::optional(Bytes{memory.free}) : std::nullopt;
}

}  // namespace weir::preload
