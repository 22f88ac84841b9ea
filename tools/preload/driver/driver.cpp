#include "tools/preload/driver/driver.hpp"

#include <dlfcn.h>

#include <atomic>
#include <cstring>
#include <new>

namespace weir::preload {
namespace {

using Dlsym = void* (*)(void*, const char*);

template <typename F>
void find(void* library, const char* name, F& function) noexcept {
  void* const address = real_dlsym(library, name);
  static_assert(sizeof address == sizeof function);
  std::memcpy(&function, &address, sizeof function);
}

// Constant-initialised: the first hooked call may come before any constructor.
constinit std::atomic<const Driver*> loaded_driver{nullptr};

void load(void* library, Driver& driver) noexcept {
#define HOOK(base, since, symbol, action, what) find(library, #symbol, driver.symbol);
#define HOOK_STREAM(base, since, symbol, action, what) \
  find(library, #symbol, driver.symbol);               \
  find(library, #symbol "_ptsz", driver.symbol##_ptsz);
#define HOOK_PTDS(base, since, symbol, action, what) \
  find(library, #symbol "_ptds", driver.symbol##_ptds);
#include "tools/preload/driver/hooks.inc"
#define CALL(symbol) find(library, #symbol, driver.symbol);
#include "tools/preload/driver/driver_calls.inc"
}

}  // namespace

const Driver* driver() noexcept {
  const Driver* const there = loaded_driver.load(std::memory_order_acquire);
  if (there != nullptr) return there;
  // Found by name, even if the program loaded it privately (RTLD_LOCAL). Never loaded by us: a
  // process without CUDA stays unchanged.
  void* const library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) {
    (void)dlerror();  // the program's next dlerror must not report our failure
    return nullptr;
  }
  // Every thread loads its own copy: waiting for another could deadlock on the loader's lock.
  auto* const mine = new (std::nothrow) Driver;
  if (mine == nullptr) return nullptr;
  load(library, *mine);
  (void)dlerror();
  const Driver* first = nullptr;
  if (loaded_driver.compare_exchange_strong(first, mine)) return mine;  // keeps the library open
  delete mine;
  dlclose(library);
  return first;
}

void* real_dlsym_address() noexcept {
  // Also constant-initialised. Two threads may find the same value.
  static constinit std::atomic<void*> real{nullptr};
  void* found = real.load(std::memory_order_acquire);
  if (found != nullptr) return found;
  found = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
  if (found == nullptr) found = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
  // This is the C library's, past any library that defines dlsym without a version. It knows those.
  Dlsym libc = nullptr;
  std::memcpy(&libc, &found, sizeof libc);
  if (void* const next = libc(RTLD_NEXT, "dlsym"); next != nullptr) found = next;
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
