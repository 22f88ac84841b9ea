#include "tools/weir/info/driver.hpp"

#include <dlfcn.h>
#include <link.h>

#include <array>
#include <cstddef>
#include <type_traits>

namespace weir::cli {
namespace {

// Copied from <cuda.h>, because this program is also built without a toolkit.
using Result = int;
using Device = int;
using Context = void*;

/// The driver's library. Never closed, because it has threads.
class Library {
 public:
  Library() : handle_(dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL)) {
    if (handle_ == nullptr) problem_ = dlerror();
  }
  [[nodiscard]] const std::string& problem() const noexcept { return problem_; }
  /// Returns the path at which the loader found it; empty if it did not.
  [[nodiscard]] std::string file() const {
    link_map* map = nullptr;
    if (handle_ == nullptr || dlinfo(handle_, RTLD_DI_LINKMAP, &map) != 0) return {};
    return map->l_name;
  }
  [[nodiscard]] bool has(const char* name) const {
    return handle_ != nullptr && dlsym(handle_, name) != nullptr;
  }

  /// Calls a function with these parameter types. Fails if the driver lacks it.
  template <typename... Parameters>
  [[nodiscard]] Result call(const char* name, std::type_identity_t<Parameters>... arguments) {
    constexpr Result kNotFound = 500;
    void* symbol = handle_ != nullptr ? dlsym(handle_, name) : nullptr;
    if (symbol == nullptr) return kNotFound;
    return reinterpret_cast<Result (*)(Parameters...)>(symbol)(arguments...);
  }

 private:
  void* const handle_;
  std::string problem_;
};

/// Returns the free memory of the device's primary context, which is created if needed.
std::optional<Bytes> free_memory(Library& driver, Device device) {
  Context context = nullptr;
  if (driver.call<Context*, Device>("cuDevicePrimaryCtxRetain", &context, device) != 0) {
    return std::nullopt;
  }
  std::size_t free = 0;
  std::size_t total = 0;
  const bool known = driver.call<Context>("cuCtxSetCurrent", context) == 0 &&
                     driver.call<std::size_t*, std::size_t*>("cuMemGetInfo_v2", &free, &total) == 0;
  (void)driver.call<Context>("cuCtxSetCurrent", nullptr);
  (void)driver.call<Device>("cuDevicePrimaryCtxRelease_v2", device);
  return known ? std::optional(Bytes{free}) : std::nullopt;
}

/// Whether the device has this attribute (CU_DEVICE_ATTRIBUTE_… of <cuda.h>).
bool has_attribute(Library& driver, int attribute, Device device) {
  int value = 0;
  return driver.call<int*, int, Device>("cuDeviceGetAttribute", &value, attribute, device) == 0 &&
         value != 0;
}

DeviceInfo ask_device(Library& driver, int number) {
  constexpr int kVirtualMemoryManagement = 102;
  constexpr int kHandlesAreFiles = 103;
  DeviceInfo info{.number = number, .name = "?", .total = {}, .free = {}};
  Device device = 0;
  if (driver.call<Device*, int>("cuDeviceGet", &device, number) != 0) return info;
  std::array<char, 256> name{};
  if (driver.call<char*, int, Device>("cuDeviceGetName", name.data(),
                                      static_cast<int>(name.size()) - 1, device) == 0) {
    info.name = name.data();
  }
  std::size_t total = 0;
  if (driver.call<std::size_t*, Device>("cuDeviceTotalMem_v2", &total, device) == 0) {
    info.total = {total};
  }
  info.has_pages = has_attribute(driver, kVirtualMemoryManagement, device);
  info.exports_files = has_attribute(driver, kHandlesAreFiles, device);
  info.free = free_memory(driver, device);
  return info;
}

}  // namespace

DriverInfo ask_driver() {
  DriverInfo info;
  Library driver;
  info.problem = driver.problem();
  if (!info.problem.empty()) return info;
  info.file = driver.file();
  info.is_standin = driver.has("weir_standin_reset");
  (void)driver.call<int*>("cuDriverGetVersion", &info.version);
  if (const Result error = driver.call<unsigned>("cuInit", 0U); error != 0) {
    info.error = error;
    info.problem =
        "cuInit says error " + std::to_string(error) + (error == 100 ? ", no device found" : "");
    return info;
  }
  int count = 0;
  if (driver.call<int*>("cuDeviceGetCount", &count) != 0 || count == 0) {
    info.problem = "the driver reports no device";
  }
  for (int number = 0; number < count; ++number) info.devices.push_back(ask_device(driver, number));
  return info;
}

std::string format_version(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

}  // namespace weir::cli
