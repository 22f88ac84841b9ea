#include "tests/standin/emulation/fiber.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <new>

#include "tests/support/sanitized.hpp"

#if WEIR_TEST_ADDRESS_SANITIZED
#include <sanitizer/common_interface_defs.h>
#endif
#if WEIR_TEST_THREAD_SANITIZED
#include <sanitizer/tsan_interface.h>
#endif
#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace weir::standin {
namespace {

/// Room for a sanitizer's larger frames.
constexpr std::size_t kStack = std::size_t{256} << 10;

thread_local Fiber* starting = nullptr;

}  // namespace

#if defined(__x86_64__)

// Saves callee-saved registers on the stack, stores its top in *from, and continues where `to` was
// saved the same way. Without swapcontext's system call for the signal mask: a kernel changes
// stacks a thousand times.
extern "C" void weir_standin_switch_stack(void** from, void* to);
asm(R"(
.text
.type weir_standin_switch_stack, @function
weir_standin_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size weir_standin_switch_stack, . - weir_standin_switch_stack
)");

namespace {

/// A stack on which the switch above returns to `enter`.
void* prepare(void* stack, void (*enter)()) {
  auto* top = reinterpret_cast<void**>(static_cast<char*>(stack) + kStack);
  *--top = nullptr;  // the place of a call's return address
  *--top = reinterpret_cast<void*>(enter);
  for (int i = 0; i < 6; ++i) *--top = nullptr;  // the registers
  return static_cast<void*>(top);
}

void switch_stack(void** from, void* to) { weir_standin_switch_stack(from, to); }

}  // namespace

#else

namespace {

void* prepare(void* stack, void (*enter)()) {
  auto* place = new ucontext_t;
  getcontext(place);
  place->uc_stack.ss_sp = stack;
  place->uc_stack.ss_size = kStack;
  makecontext(place, enter, 0);
  return place;
}

void switch_stack(void** from, void* to) {
  if (*from == nullptr) *from = new ucontext_t;
  swapcontext(static_cast<ucontext_t*>(*from), static_cast<ucontext_t*>(to));
}

}  // namespace

#endif

Fiber::Fiber(void (*run)(void*), void* argument) : run_(run), argument_(argument) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* memory = mmap(nullptr, kStack + page, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  mprotect(memory, page, PROT_NONE);  // below the stack, so that an overflow shows
  stack_ = static_cast<char*>(memory) + page;
  own_place_ = prepare(stack_, &Fiber::enter);
#if WEIR_TEST_THREAD_SANITIZED
  own_state_ = __tsan_create_fiber(0);
#endif
}

Fiber::~Fiber() {
#if WEIR_TEST_THREAD_SANITIZED
  __tsan_destroy_fiber(own_state_);
#endif
#if !defined(__x86_64__)
  delete static_cast<ucontext_t*>(own_place_);
  delete static_cast<ucontext_t*>(caller_place_);
#endif
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  munmap(static_cast<char*>(stack_) - page, kStack + page);
}

bool Fiber::resume() {
  starting = this;
  ended_ = false;
  switch_in();
  return ended_;
}

void Fiber::pause() { switch_out(); }

void Fiber::enter() {
  // Read before anything else runs: after the first pause the variable is the next fiber's.
  Fiber* self = starting;
  self->loop();
}

void Fiber::loop() {
#if WEIR_TEST_ADDRESS_SANITIZED
  __sanitizer_finish_switch_fiber(nullptr, &caller_stack_, &caller_stack_bytes_);
#endif
  for (;;) {
    run_(argument_);
    ended_ = true;
    switch_out();
  }
}

void Fiber::switch_in() {
#if WEIR_TEST_ADDRESS_SANITIZED
  void* fake_stack = nullptr;
  __sanitizer_start_switch_fiber(&fake_stack, stack_, kStack);
#endif
#if WEIR_TEST_THREAD_SANITIZED
  caller_state_ = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(own_state_, 0);
#endif
  switch_stack(&caller_place_, own_place_);
#if WEIR_TEST_ADDRESS_SANITIZED
  __sanitizer_finish_switch_fiber(fake_stack, nullptr, nullptr);
#endif
}

void Fiber::switch_out() {
#if WEIR_TEST_ADDRESS_SANITIZED
  __sanitizer_start_switch_fiber(&own_fake_stack_, caller_stack_, caller_stack_bytes_);
#endif
#if WEIR_TEST_THREAD_SANITIZED
  __tsan_switch_to_fiber(caller_state_, 0);
#endif
  switch_stack(&own_place_, caller_place_);
#if WEIR_TEST_ADDRESS_SANITIZED
  __sanitizer_finish_switch_fiber(own_fake_stack_, &caller_stack_, &caller_stack_bytes_);
#endif
}

}  // namespace weir::standin
