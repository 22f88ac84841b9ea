// A stand-in for PyTorch's libraries as far as its allocator's start goes: LOADER_TORCH is 1 for
// libc10, 2 for libc10_cuda and 3 for libtorch_cuda. Like PyTorch's they name each other, and the
// last calls the second by the loader's table.

#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <stdexcept>

#if LOADER_TORCH == 1

// A constructor of c10::Error, whose name tells the C++ ABI.
extern "C" __attribute__((visibility("default"))) void loader_error() asm(LOADER_ERROR);
void loader_error() {}

#else

namespace c10::cuda {
__attribute__((visibility("default"))) std::int8_t device_count_ensure_non_zero();
}  // namespace c10::cuda

#if LOADER_TORCH == 2

extern "C" void loader_error() asm(LOADER_ERROR);

// As PyTorch's, asks the driver and throws where there is no device.
std::int8_t c10::cuda::device_count_ensure_non_zero() {
  loader_error();
  std::printf("counts\n");
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
  int count = 0;
  if (driver != nullptr) {
    using Init = int (*)(unsigned);
    using Count = int (*)(int*);
    (void)reinterpret_cast<Init>(dlsym(driver, "cuInit"))(0);
    (void)reinterpret_cast<Count>(dlsym(driver, "cuDeviceGetCount"))(&count);
  }
  (void)dlerror();
  if (count == 0) throw std::runtime_error("there is no GPU");
  return static_cast<std::int8_t>(count);
}

#else

// As CUDAHooks::init.
extern "C" __attribute__((visibility("default"))) void loader_use_torch() {
  try {
    const int count = c10::cuda::device_count_ensure_non_zero();
    std::printf("allocator of %d\n", count);
  } catch (const std::exception& error) {
    std::printf("thrown: %s\n", error.what());
  }
}

#endif
#endif
