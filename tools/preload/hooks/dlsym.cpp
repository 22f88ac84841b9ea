// dlsym as the program sees it. Answers if the program would find a hooked function of the driver
// or of NVML. Everything else jumps to the real dlsym with the caller's return address unchanged,
// because RTLD_NEXT and RTLD_DEFAULT depend on the caller. The real dlsym does not see our
// functions (exports.ld.in), so a probe for a missing function finds nothing.

#include <dlfcn.h>

#include "tools/preload/driver/driver.hpp"
#include "tools/preload/driver/scope.hpp"
#include "tools/preload/hooks/caller.hpp"
#include "tools/preload/hooks/lookup.hpp"

#if !defined(__x86_64__)
#error "the jump below is written for x86-64"
#endif

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
