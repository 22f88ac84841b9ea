#include "tools/preload/hooks/lookup.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "allocator/base/log.hpp"
#include "tools/preload/driver/nvml_api.hpp"
#include "tools/preload/hooks/hook_list.hpp"
#include "tools/preload/hooks/pass.hpp"
#include "tools/preload/process/process.hpp"

namespace weir::preload {
namespace {

/// No driver has an older form for per-thread default streams, whatever its function's version: a
/// look-up below this finds the legacy form at best.
constexpr int kFirstPerThread = 7000;

/// The functions of one hook, in the order of the table.
struct Functions {
  void* ours = nullptr;
  void* ours_per_thread = nullptr;
};

template <typename F>
void* address(F* function) noexcept {
  return reinterpret_cast<void*>(function);
}

// Not constexpr: addresses are known only when the library is loaded. Not static data: loading must
// run no code of ours.
Functions functions_of(std::size_t index) noexcept {
  std::size_t at = 0;
#define HOOK(base, since, symbol, action, what) \
  if (index == at++) return {address(&::symbol), nullptr};
#define HOOK_STREAM(base, since, symbol, action, what) \
  if (index == at++) return {address(&::symbol), address(&::symbol##_ptsz)};
#define HOOK_PTDS(base, since, symbol, action, what) \
  if (index == at++) return {nullptr, address(&::symbol##_ptds)};
#include "tools/preload/driver/hooks.inc"
  return {};
}

bool same(const char* a, const char* b) noexcept { return a != nullptr && std::strcmp(a, b) == 0; }

/// Our function for a symbol, and the library whose function it replaces.
struct Ours {
  void* function = nullptr;
  const char* library = nullptr;
};

Ours ours(const char* symbol) noexcept {
#define NVML_HOOK(name, what) \
  if (same(#name, symbol)) return {address(&::name), "libnvidia-ml.so.1"};
#include "tools/preload/driver/nvml_hooks.inc"
  const auto table = hooks();
  for (std::size_t i = 0; i < table.size(); ++i) {
    const bool plain = same(table[i].symbol, symbol);
    if (!plain && !same(table[i].per_thread, symbol)) continue;
    const Functions functions = functions_of(i);
    return {plain ? functions.ours : functions.ours_per_thread, "libcuda.so.1"};
  }
  return {};
}

/// Whether `real` is what a loaded library defines under that name.
bool is_from(const char* library, const char* symbol, const void* real) noexcept {
  void* const loaded = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
  if (loaded == nullptr) {
    (void)dlerror();
    return false;
  }
  const bool same_function = real_dlsym(loaded, symbol) == real;
  dlclose(loaded);
  return same_function;
}

/// Returns the driver's answer; null if none.
void* driver_function(const char* base, int version, cuuint64_t flags) noexcept {
  const Driver* const d = driver();
  void* found = nullptr;
  if (d == nullptr) return nullptr;
  const Inside inside;
  if (d->cuGetProcAddress_v2 != nullptr) {
    CUdriverProcAddressQueryResult result{};
    return d->cuGetProcAddress_v2(base, &found, version, flags, &result) == CUDA_SUCCESS ? found
                                                                                         : nullptr;
  }
  if (d->cuGetProcAddress == nullptr) return nullptr;
  return d->cuGetProcAddress(base, &found, version, flags) == CUDA_SUCCESS ? found : nullptr;
}

void say_swapped(const char* name, const void* caller) noexcept {
  if (log_level() < LogLevel::kDebug) return;
  Dl_info info{};
  const bool known = dladdr(caller, &info) != 0 && info.dli_fname != nullptr;
  log(LogLevel::kDebug, std::string("swapped ") + name + " for " + (known ? info.dli_fname : "?"));
}

CUresult look_up(CUresult code, const char* base, void** function, int version, cuuint64_t flags,
                 const void* caller) noexcept {
  if (code != CUDA_SUCCESS || base == nullptr || function == nullptr || *function == nullptr) {
    return code;
  }
  const Call call;
  (void)Process::get();  // reads the settings, so that a bad one ends the program before its work
  void* const ours = swap_looked_up(base, version, flags, *function);
  if (ours == *function) return code;
  *function = ours;
  say_swapped(base, caller);
  return code;
}

}  // namespace

bool is_hooked(const char* symbol) noexcept { return ours(symbol).function != nullptr; }

void* swap_symbol(const char* symbol, void* real) noexcept {
  const Ours hook = ours(symbol);
  return hook.function != nullptr && is_from(hook.library, symbol, real) ? hook.function : real;
}

void* swap_looked_up(const char* base, int version, cuuint64_t flags, void* real) noexcept {
  const auto table = hooks();
  const bool per_thread = flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  for (std::size_t i = 0; i < table.size(); ++i) {
    const int since = table[i].since;
    if (version < since || !same(table[i].base, base)) continue;
    const auto is_real = [&](void* ours, int at, cuuint64_t form) {
      return ours != nullptr && driver_function(base, at, form) == real;
    };
    // The driver's answer decides the form, not the flags: a version without a per-thread form may
    // give the legacy one.
    const Functions functions = functions_of(i);
    const int own = std::max(since, kFirstPerThread);
    if (per_thread && is_real(functions.ours_per_thread, own, flags)) {
      return functions.ours_per_thread;
    }
    if (is_real(functions.ours, since, CU_GET_PROC_ADDRESS_LEGACY_STREAM)) return functions.ours;
  }
  return real;
}

}  // namespace weir::preload

using namespace weir::preload;

extern "C" {

CUresult cuGetProcAddress_v2(const char* symbol, void** function, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult* result) {
  const CUresult code =
      pass(&Driver::cuGetProcAddress_v2, symbol, function, version, flags, result);
  return look_up(code, symbol, function, version, flags, __builtin_return_address(0));
}

CUresult cuGetProcAddress(const char* symbol, void** function, int version, cuuint64_t flags) {
  const CUresult code = pass(&Driver::cuGetProcAddress, symbol, function, version, flags);
  return look_up(code, symbol, function, version, flags, __builtin_return_address(0));
}

}  // extern "C"
