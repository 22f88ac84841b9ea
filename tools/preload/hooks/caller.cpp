#include "tools/preload/hooks/caller.hpp"

#include <dlfcn.h>
#include <link.h>

#include "tools/preload/driver/driver.hpp"

namespace weir::preload {
namespace {

/// Returns the loader's record of the library that contains the address; null if none.
const link_map* library_at(const void* address) noexcept {
  Dl_info info{};
  void* map = nullptr;
  return dladdr1(address, &info, &map, RTLD_DL_LINKMAP) != 0 ? static_cast<const link_map*>(map)
                                                             : nullptr;
}

/// The same look-up, but a failure leaves no message for dlerror.
void* quietly(void* library, const char* name) noexcept {
  void* const found = real_dlsym(library, name);
  if (found == nullptr) (void)dlerror();
  return found;
}

/// Returns what a loaded library and its dependencies define.
void* found_in(const link_map& library, const char* name) noexcept {
  if (library.l_name == nullptr || *library.l_name == '\0') return nullptr;
  void* const opened = dlopen(library.l_name, RTLD_LAZY | RTLD_NOLOAD);
  if (opened == nullptr) {
    (void)dlerror();
    return nullptr;
  }
  void* const found = quietly(opened, name);
  dlclose(opened);
  return found;
}

bool defines(const link_map& library, const char* name) noexcept {
  void* const found = found_in(library, name);
  return found != nullptr && library_at(found) == &library;
}

}  // namespace

void* found_by_default(const char* name, const void* caller) noexcept {
  // From here this searches the global scope, the first part of every caller's. Our own functions
  // are hidden from it (exports.ld.in).
  if (void* const found = quietly(RTLD_DEFAULT, name); found != nullptr) return found;
  const link_map* const library = library_at(caller);
  return library != nullptr ? found_in(*library, name) : nullptr;
}

void* found_next(const char* name, const void* caller) noexcept {
  const link_map* const asking = library_at(caller);
  const link_map* const ours = library_at(reinterpret_cast<const void*>(&found_next));
  if (asking == nullptr || ours == nullptr) return nullptr;
  // Libraries before ours were loaded at the start and stay until the end.
  for (const link_map* each = ours->l_prev; each != nullptr; each = each->l_prev) {
    if (each == asking) return quietly(RTLD_NEXT, name);
    if (defines(*each, name))
      return nullptr;  // between the caller and the driver: the caller gets
                       // it
  }
  return nullptr;
}

}  // namespace weir::preload
