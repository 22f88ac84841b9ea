#pragma once

// Asks the driver itself, by the names of its own functions. Our programs use the runtime, which
// answers some questions differently.

#include <cuda.h>
#include <dlfcn.h>

#include <string>

#include "allocator/base/error.hpp"

namespace weir::gpu_check {

/// The driver's functions used here.
class Driver {
 public:
  explicit Driver(void* library) : library_(library) {}

  /// Returns what `name` returns. Throws Error if the driver has no such function.
  template <typename Function, typename... Arguments>
  CUresult raw(const char* name, Arguments... arguments) const {
    const auto function = reinterpret_cast<Function*>(dlsym(library_, name));
    if (function == nullptr) throw Error("the driver has no " + std::string(name));
    return function(arguments...);
  }

 private:
  void* library_;
};

// NOLINTNEXTLINE(cppcoreguidelines-macro-usage): the symbol's version is in the name's own macro
#define WEIR_TEXT(name) #name
// NOLINTNEXTLINE(cppcoreguidelines-macro-usage)
#define WEIR_SYMBOL(name) WEIR_TEXT(name)
// NOLINTNEXTLINE(cppcoreguidelines-macro-usage)
#define RAW(driver, name, ...) (driver).raw<decltype(name)>(WEIR_SYMBOL(name), __VA_ARGS__)

inline void check(CUresult code, const char* call) {
  if (code != CUDA_SUCCESS) throw Error(std::string(call) + " returned " + std::to_string(code));
}
// NOLINTNEXTLINE(cppcoreguidelines-macro-usage)
#define CALL(driver, name, ...) check(RAW(driver, name, __VA_ARGS__), #name)

/// Returns what the management library reports of the first device's memory beside what CUDA
/// reports, and of its parts under MIG.
[[nodiscard]] std::string memory_by_nvml(const Driver& driver);

}  // namespace weir::gpu_check
