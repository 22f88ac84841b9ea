#include "tools/preload/driver/nvml.hpp"

#include <dlfcn.h>
#include <pthread.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <new>

namespace weir::preload {
namespace {

constexpr const char* kNvmlLibrary = "libnvidia-ml.so.1";

constinit std::atomic<const Nvml*> loaded_nvml{nullptr};

template <typename F>
void find_nvml(void* library, const char* name, F& function) noexcept {
  void* const address = real_dlsym(library, name);
  std::memcpy(&function, &address, sizeof address);
}

/// Opens the library with these flags of dlopen. It stays open: it may have threads of its own.
const Nvml* open_nvml(int flags) noexcept {
  if (const Nvml* const there = loaded_nvml.load(std::memory_order_acquire)) return there;
  void* const library = dlopen(kNvmlLibrary, RTLD_LAZY | RTLD_LOCAL | flags);
  auto* const mine = library != nullptr ? new (std::nothrow) Nvml : nullptr;
  if (mine == nullptr) {
    (void)dlerror();  // the program's next dlerror must not report our failure
    return nullptr;
  }
  find_nvml(library, "nvmlInit_v2", mine->nvmlInit_v2);
  find_nvml(library, "nvmlDeviceGetHandleByPciBusId_v2", mine->nvmlDeviceGetHandleByPciBusId_v2);
  find_nvml(library, "nvmlDeviceGetPciInfo_v3", mine->nvmlDeviceGetPciInfo_v3);
  find_nvml(library, "nvmlDeviceGetUUID", mine->nvmlDeviceGetUUID);
#define NVML_HOOK(symbol, what) find_nvml(library, #symbol, mine->symbol);
#include "tools/preload/driver/nvml_hooks.inc"
  (void)dlerror();
  const Nvml* first = nullptr;
  if (loaded_nvml.compare_exchange_strong(first, mine)) return mine;
  delete mine;
  dlclose(library);
  return first;
}

// Starts NVML for our own use: the program may have shut down its use, and starts are counted.
constinit bool nvml_started = false;
constinit pthread_once_t nvml_once = PTHREAD_ONCE_INIT;

void start_nvml() noexcept {
  const Nvml* const library = open_nvml(0);
  nvml_started = library != nullptr && library->nvmlInit_v2 != nullptr &&
                 library->nvmlDeviceGetHandleByPciBusId_v2 != nullptr &&
                 library->nvmlDeviceGetMemoryInfo != nullptr &&
                 library->nvmlInit_v2() == kNvmlSuccess;
}

/// `GPU-` or `MIG-` and the bytes as 8, 4, 4, 4 and 12 digits.
bool is_uuid(const char* text, const CUuuid& uuid) noexcept {
  std::array<char, 40> expected{};
  std::size_t at = 0;
  for (std::size_t i = 0; i < sizeof uuid.bytes; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) expected.at(at++) = '-';
    const unsigned byte = static_cast<unsigned char>(uuid.bytes[i]);
    std::snprintf(&expected.at(at), expected.size() - at, "%02x", byte);
    at += 2;
  }
  const bool known = std::strncmp(text, "GPU-", 4) == 0 || std::strncmp(text, "MIG-", 4) == 0;
  return known && std::strcmp(text + 4, expected.data()) == 0;
}

bool is_place(const NvmlPciInfo& place, const char* bus) noexcept {
  unsigned domain = 0;
  unsigned number = 0;
  unsigned device = 0;
  return std::sscanf(bus, "%x:%x:%x", &domain, &number, &device) == 3 && place.domain == domain &&
         place.bus == number && place.device == device;
}

}  // namespace

const Nvml* nvml() noexcept { return open_nvml(RTLD_NOLOAD); }

std::optional<CUdevice> cuda_device_of(const Nvml& nvml, void* device,
                                       const Driver& driver) noexcept {
  std::array<char, 96> uuid{};
  NvmlPciInfo place{};
  const bool has_uuid = nvml.nvmlDeviceGetUUID != nullptr && driver.cuDeviceGetUuid_v2 != nullptr &&
                        nvml.nvmlDeviceGetUUID(device, uuid.data(),
                                               static_cast<unsigned>(uuid.size())) == kNvmlSuccess;
  // A device and its parts have the same place.
  const bool has_place = !has_uuid && nvml.nvmlDeviceGetPciInfo_v3 != nullptr &&
                         driver.cuDeviceGetPCIBusId != nullptr &&
                         nvml.nvmlDeviceGetPciInfo_v3(device, &place) == kNvmlSuccess;
  int count = 0;
  if ((!has_uuid && !has_place) || driver.cuDeviceGetCount(&count) != CUDA_SUCCESS) return {};
  for (CUdevice each = 0; each < count; ++each) {
    CUuuid its{};
    std::array<char, 32> bus{};
    const bool same =
        has_uuid
            ? driver.cuDeviceGetUuid_v2(&its, each) == CUDA_SUCCESS && is_uuid(uuid.data(), its)
            : driver.cuDeviceGetPCIBusId(bus.data(), static_cast<int>(bus.size()), each) ==
                      CUDA_SUCCESS &&
                  is_place(place, bus.data());
    if (same) return each;
  }
  return {};
}

std::optional<Bytes> free_without_context(const Driver& driver, CUdevice device) noexcept {
  pthread_once(&nvml_once, &start_nvml);
  const Nvml* const library = nvml_started ? nvml() : nullptr;
  std::array<char, 32> bus{};
  void* handle = nullptr;
  NvmlMemory memory{};
  const bool known =
      library != nullptr && driver.cuDeviceGetPCIBusId != nullptr &&
      driver.cuDeviceGetPCIBusId(bus.data(), static_cast<int>(bus.size()), device) ==
          CUDA_SUCCESS &&
      library->nvmlDeviceGetHandleByPciBusId_v2(bus.data(), &handle) == kNvmlSuccess &&
      library->nvmlDeviceGetMemoryInfo(handle, &memory) == kNvmlSuccess;
  return known ? std::optional(Bytes{memory.free}) : std::nullopt;
}

}  // namespace weir::preload
