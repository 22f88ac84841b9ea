#include "tests/standin/runtime/calls.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>

namespace weir::standin {
namespace {

template <typename F>
void look_up(const Library& library, const char* name, cuuint64_t flags, F& function) {
  void* found = nullptr;
  const int version = std::min(library.version, CUDA_VERSION);
  if (library.get(name, &found, version, flags, nullptr) != CUDA_SUCCESS) found = nullptr;
  function = reinterpret_cast<F>(found);
}

void look_up_all(const Library& library, cuuint64_t flags, Calls& calls) {
#define CALL(name) look_up(library, #name, flags, calls.name);
#include "tests/standin/runtime/calls.inc"
#undef CALL
}

/// As the toolkit's runtime does: one symbol by dlsym, through which it looks up everything, itself
/// too.
bool find_lookup(Library& library) {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == nullptr) return false;
  const auto first =
      reinterpret_cast<decltype(&::cuGetProcAddress)>(dlsym(driver, "cuGetProcAddress_v2"));
  if (first == nullptr) return false;
  void* probe = nullptr;
  (void)first("", &probe, 0, CU_GET_PROC_ADDRESS_DEFAULT, nullptr);
  void* older = nullptr;
  void* newer = nullptr;
  (void)first("cuGetProcAddress", &older, 11030, CU_GET_PROC_ADDRESS_DEFAULT, nullptr);
  (void)first("cuGetProcAddress", &newer, 12000, CU_GET_PROC_ADDRESS_DEFAULT, nullptr);
  library.get = newer == nullptr ? first : reinterpret_cast<decltype(&::cuGetProcAddress)>(newer);
  void* version = nullptr;
  (void)library.get("cuDriverGetVersion", &version, 2020, CU_GET_PROC_ADDRESS_DEFAULT, nullptr);
  return version != nullptr && reinterpret_cast<decltype(&::cuDriverGetVersion)>(version)(
                                   &library.version) == CUDA_SUCCESS;
}

/// The runtime refuses a driver of an older major version.
int required_version() {
  const char* const text = std::getenv("WEIR_STANDIN_RUNTIME_VERSION");
  return text != nullptr ? std::atoi(text) : CUDART_VERSION;
}

Library open() {
  Library library;
  if (!find_lookup(library)) {
    library.status = cudaErrorInsufficientDriver;
    return library;
  }
  // Minor versions may differ, major ones not.
  if (library.version / 1000 < required_version() / 1000) {
    library.status = cudaErrorInsufficientDriver;
    return library;
  }
  look_up_all(library, CU_GET_PROC_ADDRESS_LEGACY_STREAM, library.legacy);
  look_up_all(library, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, library.per_thread);
  look_up(library, "weir_standin_function_of", CU_GET_PROC_ADDRESS_DEFAULT, library.function_of);
  look_up(library, "weir_standin_refuse_runtime", CU_GET_PROC_ADDRESS_DEFAULT, library.refuse);
  library.status = static_cast<cudaError_t>(library.legacy.cuInit(0));
  return library;
}

}  // namespace

const Library& library() {
  static const auto* const kLibrary = new Library(open());
  return *kLibrary;
}

}  // namespace weir::standin
