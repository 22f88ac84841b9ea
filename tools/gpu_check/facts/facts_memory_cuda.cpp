// What the management library reports of a device's memory beside what CUDA reports. Its functions
// are declared here from its documentation: the library comes with the driver, and a toolkit may
// lack its header.

#include <array>

#include "tools/gpu_check/facts/facts.hpp"
#include "tools/gpu_check/facts/facts_driver_cuda.hpp"

namespace weir::gpu_check {
namespace {

/// nvmlMemory_t.
struct NvmlMemory {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};

/// Its functions that change nothing.
class Nvml {
 public:
  explicit Nvml(void* library) : library_(library) {}

  /// Returns what `name` returns. Throws Error if the library has no such function.
  template <typename... Arguments>
  int call(const char* name, Arguments... arguments) const {
    const auto function = reinterpret_cast<int (*)(Arguments...)>(dlsym(library_, name));
    if (function == nullptr) throw Error("the management library has no " + std::string(name));
    return function(arguments...);
  }
  template <typename... Arguments>
  void require(const char* name, Arguments... arguments) const {
    const int code = call(name, arguments...);
    if (code != 0) throw Error(std::string(name) + " returned " + std::to_string(code));
  }
  [[nodiscard]] NvmlMemory memory(void* device) const {
    NvmlMemory memory{};
    require("nvmlDeviceGetMemoryInfo", device, &memory);
    return memory;
  }

 private:
  void* library_;
};

/// Device memory for the duration of the question.
class Memory {
 public:
  Memory(const Driver& driver, std::size_t bytes) : driver_(driver) {
    CALL(driver_, cuMemAlloc, &at_, bytes);
  }
  ~Memory() { (void)RAW(driver_, cuMemFree, at_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

 private:
  const Driver& driver_;
  CUdeviceptr at_ = 0;
};

struct CudaMemory {
  std::size_t free = 0;
  std::size_t total = 0;
};
CudaMemory memory_of_cuda(const Driver& driver) {
  CudaMemory memory;
  CALL(driver, cuMemGetInfo, &memory.free, &memory.total);
  return memory;
}

/// Returns `off`, `on`, or why that is unknown.
std::string mig_mode(const Nvml& nvml, void* device) {
  unsigned current = 0;
  unsigned pending = 0;
  const int code = nvml.call("nvmlDeviceGetMigMode", device, &current, &pending);
  if (code != 0) return "not there (" + std::to_string(code) + ")";
  return current != 0 ? "on" : "off";
}

/// Returns whether the driver's device has that handle's UUID, by which the swap-in recognizes a
/// part.
std::string same_uuid(const Nvml& nvml, const Driver& driver, void* device) {
  std::array<char, 96> text{};
  CUuuid uuid{};
  if (nvml.call("nvmlDeviceGetUUID", device, text.data(), 96U) != 0 ||
      RAW(driver, cuDeviceGetUuid, &uuid, CUdevice{0}) != CUDA_SUCCESS) {
    return "not told";
  }
  std::string digits;
  for (const char byte : uuid.bytes) {
    constexpr const char* kDigits = "0123456789abcdef";
    digits += kDigits[static_cast<unsigned char>(byte) >> 4U];
    digits += kDigits[static_cast<unsigned char>(byte) & 15U];
  }
  std::string its = text.data();
  its.erase(0, its.find('-') + 1);
  std::erase(its, '-');
  return its == digits ? "CUDA's" : "another than CUDA's";
}

/// Returns the figures of each part of a device in MIG mode.
std::string parts_of(const Nvml& nvml, const Driver& driver, void* device) {
  unsigned count = 0;
  nvml.require("nvmlDeviceGetMaxMigDeviceCount", device, &count);
  std::string found;
  for (unsigned i = 0; i < count; ++i) {
    void* part = nullptr;
    if (nvml.call("nvmlDeviceGetMigDeviceHandleByIndex", device, i, &part) != 0) continue;
    const NvmlMemory memory = nvml.memory(part);
    found += "; part " + std::to_string(i) + ": " + format_bytes({memory.total}) + ", free " +
             format_bytes({memory.free}) + ", its UUID is " + same_uuid(nvml, driver, part);
  }
  return found;
}

}  // namespace

std::string memory_by_nvml(const Driver& driver) {
  void* const library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw Error("there is no libnvidia-ml.so.1");
  const Nvml nvml(library);  // never unloaded: it may have its own threads
  nvml.require("nvmlInit_v2");
  std::array<char, 32> bus{};
  CALL(driver, cuDeviceGetPCIBusId, bus.data(), static_cast<int>(bus.size()), CUdevice{0});
  void* device = nullptr;
  nvml.require("nvmlDeviceGetHandleByPciBusId_v2", static_cast<const char*>(bus.data()), &device);
  const std::string mig = mig_mode(nvml, device);
  const NvmlMemory before = nvml.memory(device);
  const CudaMemory cuda_before = memory_of_cuda(driver);
  constexpr std::size_t kTaken = std::size_t{256} << 20U;
  const Memory taken(driver, kTaken);
  const NvmlMemory after = nvml.memory(device);
  const CudaMemory cuda_after = memory_of_cuda(driver);
  return "MIG " + mig + "; NVML " + format_bytes({before.total}) + ", free " +
         format_bytes({before.free}) + "; CUDA " + format_bytes({cuda_before.total}) + ", free " +
         format_bytes({cuda_before.free}) + "; of " + format_bytes({kTaken}) +
         " that are taken NVML sees " + bytes_taken(before.free, after.free) + ", CUDA " +
         bytes_taken(cuda_before.free, cuda_after.free) + "; the device's UUID is " +
         same_uuid(nvml, driver, device) + (mig == "on" ? parts_of(nvml, driver, device) : "");
}

}  // namespace weir::gpu_check
