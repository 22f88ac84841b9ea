// Prints what a program finds of each hook on its driver, a line for each symbol: its class, and
// whose function (weir, driver or nothing) it gets by dlsym with the driver's handle, and by
// cuGetProcAddress at the hook's version.

#include <cuda.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "tools/preload/hooks/hook_list.hpp"

namespace {

using Get = CUresult (*)(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*);

const char* whose(void* function) {
  Dl_info info{};
  if (function == nullptr || dladdr(function, &info) == 0) return "nothing";
  return std::strstr(info.dli_fname, "libweir.so") != nullptr ? "weir" : "driver";
}

void print(void* driver, Get get, const weir::preload::Hook& hook, const char* symbol,
           cuuint64_t flags) {
  if (symbol == nullptr) return;
  void* found = nullptr;
  // There are per-thread forms from 7.0 on.
  const int version = flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM && hook.since < 7000
                          ? 7000
                          : hook.since;
  if (get(hook.base, &found, version, flags, nullptr) != CUDA_SUCCESS) found = nullptr;
  std::printf("%s %s %s %s\n", std::string(weir::to_string(hook.action)).c_str(), symbol,
              whose(dlsym(driver, symbol)), whose(found));
}

}  // namespace

int main() {
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
  auto* const get =
      driver != nullptr ? reinterpret_cast<Get>(dlsym(driver, "cuGetProcAddress_v2")) : nullptr;
  auto* const version_of =
      driver != nullptr ? reinterpret_cast<CUresult (*)(int*)>(dlsym(driver, "cuDriverGetVersion"))
                        : nullptr;
  int version = 0;
  if (get == nullptr || version_of == nullptr || version_of(&version) != CUDA_SUCCESS) {
    std::printf("not so: there is a driver\n");
    return 1;
  }
  std::printf("version %d\n", version);
  for (const auto& hook : weir::preload::hooks()) {
    print(driver, get, hook, hook.symbol, CU_GET_PROC_ADDRESS_LEGACY_STREAM);
    print(driver, get, hook, hook.per_thread, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
  }
  return 0;
}
