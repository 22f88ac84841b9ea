// PyTorch's c10::cuda::device_count_ensure_non_zero. From 2.4 to 2.15 CUDAHooks::init, which every
// use of CUDA in PyTorch begins with, calls it by the loader's table just before it initialises the
// allocator, which it reads anew after the call. So here the allocator can still be replaced.
//
// A process without PyTorch never calls it.

#include <dlfcn.h>
#include <link.h>

#include <cstdint>
#include <cstring>

#include "allocator/base/log.hpp"
#include "tools/preload/driver/driver.hpp"
#include "tools/preload/hooks/torch_plug.hpp"

namespace c10::cuda {

__attribute__((visibility("default"))) std::int8_t device_count_ensure_non_zero();

}  // namespace c10::cuda

namespace weir::preload {
namespace {

using DeviceCount = std::int8_t (*)();
constexpr const char* kDeviceCount = "_ZN3c104cuda28device_count_ensure_non_zeroEv";

/// Returns the function that the code at `caller` would call without this library; null if there is
/// none. Searches the caller's library and what it needs: each of two installations has its own.
DeviceCount real_device_count(const void* caller) noexcept {
  Dl_info info{};
  void* map = nullptr;
  void* const library = dladdr1(caller, &info, &map, RTLD_DL_LINKMAP) != 0 && map != nullptr
                            ? dlopen(static_cast<link_map*>(map)->l_name, RTLD_LAZY | RTLD_NOLOAD)
                            : nullptr;
  // Ours is hidden from dlsym (exports.ld.in), so it does not find itself.
  void* found = library != nullptr ? real_dlsym(library, kDeviceCount) : nullptr;
  if (library != nullptr) dlclose(library);
  if (found == nullptr) found = real_dlsym(RTLD_DEFAULT, kDeviceCount);
  if (found == nullptr) (void)dlerror();
  DeviceCount real = nullptr;
  std::memcpy(&real, &found, sizeof real);
  return real != &c10::cuda::device_count_ensure_non_zero ? real : nullptr;
}

}  // namespace
}  // namespace weir::preload

/// Returns PyTorch's own answer, or throws what that throws: then there is no device to allocate
/// on, and nothing is plugged in.
std::int8_t c10::cuda::device_count_ensure_non_zero() {
  using namespace weir::preload;
  const DeviceCount real = real_device_count(__builtin_return_address(0));
  if (real == nullptr) {
    weir::log(weir::LogLevel::kError,
              "PyTorch's libc10_cuda.so is not loaded: no device is counted");
    return 0;
  }
  const std::int8_t count = real();
  plug_into_torch(reinterpret_cast<const void*>(real));
  return count;
}
