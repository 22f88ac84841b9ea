// Every way in which programs reach the driver's functions. Built as a program that links the
// driver (LOADER_LINKED), one that does not, and a library.

#include "use_driver.hpp"

#include <cuda.h>
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstring>

namespace {

struct Functions {
  CUresult (*init)(unsigned int) = nullptr;
  CUresult (*retain)(CUcontext*, CUdevice) = nullptr;
  CUresult (*set_current)(CUcontext) = nullptr;
  CUresult (*allocate)(CUdeviceptr*, std::size_t) = nullptr;
  CUresult (*free)(CUdeviceptr) = nullptr;
  std::uint64_t (*calls)(const char*) = nullptr;
};

int fail(const char* what) {
  std::printf("not so: %s\n", what);
  return 1;
}

template <typename F>
bool set(F*& function, void* found) {
  function = reinterpret_cast<F*>(found);
  return found != nullptr;
}

bool find_by_name(void* library, Functions& f) {
  return set(f.init, dlsym(library, "cuInit")) &&
         set(f.retain, dlsym(library, "cuDevicePrimaryCtxRetain")) &&
         set(f.set_current, dlsym(library, "cuCtxSetCurrent")) &&
         set(f.allocate, dlsym(library, "cuMemAlloc_v2")) &&
         set(f.free, dlsym(library, "cuMemFree_v2")) &&
         set(f.calls, dlsym(library, "weir_standin_calls"));
}

/// By cuGetProcAddress in its form before or since 12.0.
bool find_by_address(void* library, bool old, Functions& f) {
  using Old = CUresult (*)(const char*, void**, int, cuuint64_t);
  using New = CUresult (*)(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*);
  void* const get = dlsym(library, old ? "cuGetProcAddress" : "cuGetProcAddress_v2");
  if (get == nullptr) return false;
  const auto ask = [&](const char* name, int version) {
    void* found = nullptr;
    const CUresult code = old ? reinterpret_cast<Old>(get)(name, &found, version, 0)
                              : reinterpret_cast<New>(get)(name, &found, version, 0, nullptr);
    return code == CUDA_SUCCESS ? found : nullptr;
  };
  const int version = old ? 11030 : 12000;
  return set(f.init, ask("cuInit", version)) &&
         set(f.retain, ask("cuDevicePrimaryCtxRetain", version)) &&
         set(f.set_current, ask("cuCtxSetCurrent", version)) &&
         set(f.allocate, ask("cuMemAlloc", version)) && set(f.free, ask("cuMemFree", version)) &&
         set(f.calls, dlsym(library, "weir_standin_calls"));
}

bool find(const char* how, Functions& f) {
  if (std::strcmp(how, "default") == 0 || std::strcmp(how, "next") == 0) {
#ifndef LOADER_LINKED
    if (dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL) == nullptr) return false;
#endif
    return find_by_name(*how == 'd' ? RTLD_DEFAULT : RTLD_NEXT, f);
  }
  const bool global = std::strcmp(how, "global") == 0;
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | (global ? RTLD_GLOBAL : RTLD_LOCAL));
  if (library == nullptr) return false;
  if (std::strncmp(how, "address", 7) == 0) {
    return find_by_address(library, std::strcmp(how, "address-11030") == 0, f);
  }
  return find_by_name(library, f);
}

int check(const Functions& f, const char* expected) {
  constexpr std::uint64_t kRounds = 300;
  CUcontext context = nullptr;
  if (f.init(0) != CUDA_SUCCESS || f.retain(&context, 0) != CUDA_SUCCESS ||
      f.set_current(context) != CUDA_SUCCESS) {
    return fail("there is a device");
  }
  const std::uint64_t before = f.calls("cuMemAlloc");
  for (std::uint64_t i = 0; i < kRounds; ++i) {
    CUdeviceptr pointer = 0;
    if (f.allocate(&pointer, 65536) != CUDA_SUCCESS) return fail("memory is allocated");
    if (f.free(pointer) != CUDA_SUCCESS) return fail("memory is freed");
  }
  const std::uint64_t calls = f.calls("cuMemAlloc") - before;
  std::printf("%llu calls of cuMemAlloc came to the driver\n",
              static_cast<unsigned long long>(calls));
  if (std::strcmp(expected, "served") == 0) {
    return calls < kRounds / 10 ? 0 : fail("hardly any of them do");
  }
  return calls == kRounds ? 0 : fail("all of them do");
}

}  // namespace

int use_driver(const char* how, const char* expected) {
  Functions functions;
#ifdef LOADER_LINKED
  if (std::strcmp(how, "linked") == 0) {
    functions = {&cuInit, &cuDevicePrimaryCtxRetain, &cuCtxSetCurrent, &cuMemAlloc, &cuMemFree,
                 nullptr};
    if (!set(functions.calls, dlsym(RTLD_DEFAULT, "weir_standin_calls"))) return 1;
    return check(functions, expected);
  }
#endif
  if (std::strcmp(how, "missing") == 0) {
    if (dlopen("libcuda.so.1", RTLD_NOW) != nullptr) return fail("there is no driver");
    return dlerror() != nullptr ? 0 : fail("dlerror says why");
  }
  return find(how, functions) ? check(functions, expected)
                              : fail("the driver's functions are found");
}
