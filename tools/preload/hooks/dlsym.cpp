// dlsym as the program sees it. Answers if the program would find a hooked function of the driver
// or of NVML. Everything else jumps to the real dlsym with the caller's return address unchanged,
// because RTLD_NEXT and RTLD_DEFAULT depend on the caller. The real dlsym does not see our
// functions (exports.ld.in), so a probe for a missing function finds nothing.

#include <dlfcn.h>
#include <link.h>

#include "tools/preload/driver/driver.hpp"
#include "tools/preload/driver/scope.hpp"
#include "tools/preload/hooks/lookup.hpp"

#if !defined(__x86_64__)
#error "the jump below is written for x86-64"
#endif

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

/// Returns what dlsym(RTLD_DEFAULT, name) of the code at `caller` would find without this library:
/// the first in the global scope, else in the caller's library and its dependencies, else null.
/// Leaves no message for dlerror. Thread-safe.
void* found_by_default(const char* name, const void* caller) noexcept {
  // From here this searches the global scope, the first part of every caller's. Our own functions
  // are hidden from it (exports.ld.in).
  if (void* const found = quietly(RTLD_DEFAULT, name); found != nullptr) return found;
  const link_map* const library = library_at(caller);
  return library != nullptr ? found_in(*library, name) : nullptr;
}

/// Returns what dlsym(RTLD_NEXT, name) of the code at `caller` would find without this library, if
/// the caller comes before it: the program, or a library preloaded earlier. Null if the caller
/// comes later or nothing is found. Leaves no message for dlerror. Thread-safe.
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

}  // namespace
}  // namespace weir::preload

extern "C" {

/// The real dlsym, read by the jump.
__attribute__((visibility("hidden"))) constinit void* weir_real_dlsym = nullptr;

/// Returns what dlsym must return to the code at `caller`, or null to ask the real one. Runs before
/// every look-up of the process, even in signal handlers and allocators, so any other name costs
/// two or three comparisons.
__attribute__((visibility("hidden"), used)) void* weir_choose_symbol(void* library,
                                                                     const char* name,
                                                                     const void* caller) noexcept {
  using namespace weir::preload;
  if (weir_real_dlsym == nullptr) weir_real_dlsym = real_dlsym_address();
  if (name == nullptr) return nullptr;
  const bool driver = name[0] == 'c' && name[1] == 'u';
  const bool nvml = name[0] == 'n' && name[1] == 'v';
  if (!driver && !nvml) return nullptr;
  if (Inside::now() || !is_hooked(name)) return nullptr;
  void* const real = library == RTLD_DEFAULT ? found_by_default(name, caller)
                     : library == RTLD_NEXT  ? found_next(name, caller)
                                             : real_dlsym(library, name);
  if (real == nullptr) return nullptr;  // asked again, so that it sets dlerror
  void* const ours = swap_symbol(name, real);
  return ours != real ? ours : nullptr;
}

}  // extern "C"

// Saves both arguments during the choice and passes it the return address; at the jump the stack is
// as at entry. Has the C library's versions, because another library that overrides dlsym finds the
// next one by them.
asm(R"(
  .text
  .globl weir_dlsym
  .globl weir_older_dlsym
  .symver weir_dlsym, dlsym@@GLIBC_2.34
  .symver weir_older_dlsym, dlsym@GLIBC_2.2.5
  .type weir_dlsym, @function
  .type weir_older_dlsym, @function
weir_dlsym:
weir_older_dlsym:
  .cfi_startproc
  endbr64
  pushq %rdi
  .cfi_adjust_cfa_offset 8
  pushq %rsi
  .cfi_adjust_cfa_offset 8
  subq $8, %rsp
  .cfi_adjust_cfa_offset 8
  movq 24(%rsp), %rdx
  call weir_choose_symbol
  addq $8, %rsp
  .cfi_adjust_cfa_offset -8
  popq %rsi
  .cfi_adjust_cfa_offset -8
  popq %rdi
  .cfi_adjust_cfa_offset -8
  testq %rax, %rax
  jne 1f
  jmp *weir_real_dlsym(%rip)
1:
  ret
  .cfi_endproc
  .size weir_dlsym, .-weir_dlsym
  .size weir_older_dlsym, .-weir_older_dlsym
)");
