// Checks which look-ups at newer_driver.cpp return Weir's functions: those at a version that Weir
// supports, in the form for the right default stream. Returns 0, or 1 with lines about the
// differences.

#include <cuda.h>
#include <dlfcn.h>

#include <cstdio>
#include <initializer_list>

namespace {

using Get = CUresult (*)(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*);

int failures = 0;

void expect(bool holds, const char* what) {
  if (holds) return;
  std::printf("not so: %s\n", what);
  ++failures;
}

void* library_of(void* function) {
  Dl_info info{};
  return dladdr(function, &info) != 0 ? info.dli_fbase : nullptr;
}

}  // namespace

int main() {
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
  // Weir's own, which only its version finds.
  void* const plain = dlvsym(RTLD_DEFAULT, "cuMemAlloc_v2", "WEIR_1");
  void* const async = dlvsym(RTLD_DEFAULT, "cuMemAllocAsync", "WEIR_1");
  void* const per_thread = dlvsym(RTLD_DEFAULT, "cuMemAllocAsync_ptsz", "WEIR_1");
  auto* const get =
      driver != nullptr ? reinterpret_cast<Get>(dlsym(driver, "cuGetProcAddress_v2")) : nullptr;
  if (get == nullptr || plain == nullptr || async == nullptr || per_thread == nullptr) {
    std::printf("not so: there is a driver, and Weir before it\n");
    return 1;
  }
  const auto ask = [&](const char* name, int version, cuuint64_t flags) {
    void* found = nullptr;
    (void)get(name, &found, version, flags, nullptr);
    return found;
  };
  expect(ask("cuMemAlloc", 3020, 0) == plain, "the version that Weir is made for is swapped");
  expect(ask("cuMemAlloc", 98000, 0) == plain, "a later one that is the same is swapped");
  for (const int version : {2000, 99000}) {
    void* const found = ask("cuMemAlloc", version, 0);
    expect(found != nullptr && found != plain, "another function is not swapped");
    expect(library_of(found) != library_of(plain), "it is the driver's");
  }
  expect(ask("cuMemAllocAsync", 12000, CU_GET_PROC_ADDRESS_DEFAULT) == async,
         "flags 0 mean the legacy default stream");
  expect(ask("cuMemAllocAsync", 12000, CU_GET_PROC_ADDRESS_LEGACY_STREAM) == async,
         "flags 1 mean the legacy default stream");
  expect(ask("cuMemAllocAsync", 12000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) == per_thread,
         "flags 2 mean the thread's default stream");
  expect(ask("cuMemAlloc", 12000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) == plain,
         "flags 2 change nothing where there is one form");
  return failures == 0 ? 0 : 1;
}
