// dlsym as the program sees it. It answers where the program would find a function of the driver,
// or of the management library, that a hook stands in front of; everything else jumps to the real
// one with the caller's return address untouched, since RTLD_NEXT and RTLD_DEFAULT mean what they
// mean to the caller. The real one does not see our own functions (exports.ld.in), so that a probe
// for what is not there finds nothing.

#include <dlfcn.h>

#include "tools/preload/driver/driver.hpp"
#include "tools/preload/driver/scope.hpp"
#include "tools/preload/hooks/caller.hpp"
#include "tools/preload/hooks/lookup.hpp"

#if !defined(__x86_64__)
#error "the jump below is written for x86-64"
#endif

extern "C" {

/// The real dlsym, where the jump reads it.
__attribute__((visibility("hidden"))) constinit void* weir_real_dlsym = nullptr;

/// What dlsym is to return to the code at `caller`, or null: ask the real one. Called before every
/// look-up of the process, also in signal handlers and allocators, so any other name costs two or
/// three comparisons.
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
  if (real == nullptr) return nullptr;  // asked again, for the sake of dlerror
  void* const ours = swap_symbol(name, real);
  return ours != real ? ours : nullptr;
}

}  // extern "C"

// Keeps both arguments over the choice, which is told of the caller by the return address; the
// stack is as at the entry when it jumps. It has the versions of the C library's: another library
// that overrides dlsym finds the next one by them.
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
