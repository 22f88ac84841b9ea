#include "tools/preload/driver.hpp"

#include <dlfcn.h>
#include <sched.h>

#include <atomic>
#include <cstring>

namespace weir::preload {
namespace {

using Dlsym = void* (*)(void*, const char*);

template <typename F>
void find(void* library, const char* name, F& function) noexcept {
  void* const address = real_dlsym(library, name);
  static_assert(sizeof address == sizeof function);
  std::memcpy(&function, &address, sizeof function);
}

// Constant-initialised: the first hooked call may come before anybody's constructors.
constinit Driver loaded;
constinit std::atomic<int> state{0};  // 0: not looked for, 1: somebody looks, 2: there

void load(void* library) noexcept {
#define HOOK(base, since, symbol, action, what) find(library, #symbol, loaded.symbol);
#define HOOK_STREAM(base, since, symbol, action, what) \
  find(library, #symbol, loaded.symbol);               \
  find(library, #symbol "_ptsz", loaded.symbol##_ptsz);
#define HOOK_PTDS(base, since, symbol, action, what) \
  find(library, #symbol "_ptds", loaded.symbol##_ptds);
#include "tools/preload/hooks.inc"
#define CALL(symbol) find(library, #symbol, loaded.symbol);
#include "tools/preload/driver_calls.inc"
}

}  // namespace

const Driver* driver() noexcept {
  if (state.load(std::memory_order_acquire) == 2) return &loaded;
  // Found by what it is called, also where a program loaded it for itself alone (RTLD_LOCAL). It is
  // never loaded by us: a process that does not use CUDA stays as it is.
  void* const library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) {
    (void)dlerror();  // the program's next question must not meet our failure
    return nullptr;
  }
  int before = 0;
  if (state.compare_exchange_strong(before, 1)) {
    load(library);  // kept open: the pointers must stay good
    (void)dlerror();
    state.store(2, std::memory_order_release);
    return &loaded;
  }
  dlclose(library);
  while (state.load(std::memory_order_acquire) != 2) sched_yield();
  return &loaded;
}

void* real_dlsym_address() noexcept {
  // Constant-initialised as well; two threads may find the same.
  static constinit std::atomic<void*> real{nullptr};
  void* found = real.load(std::memory_order_acquire);
  if (found != nullptr) return found;
  found = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
  if (found == nullptr) found = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
  real.store(found, std::memory_order_release);
  return found;
}

void* real_dlsym(void* library, const char* name) noexcept {
  Dlsym real = nullptr;
  void* const address = real_dlsym_address();
  std::memcpy(&real, &address, sizeof real);
  return real(library, name);
}

}  // namespace weir::preload
