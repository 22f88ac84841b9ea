// A separate file, so that no caller sees both operator new and the code of its delete: some
// compilers report a mismatch of the two.

#include "support/failing_new.hpp"

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

thread_local std::uint64_t coming = 0;  ///< allocations until the one that fails; 0: none
thread_local bool all_fail = false;
thread_local bool failed = false;
std::atomic<bool> counting = false;
std::atomic<std::uint64_t> counted = 0;

void* allocated(std::size_t size, std::size_t alignment) {
  if (counting.load(std::memory_order_relaxed)) ++counted;
  if (all_fail || (coming != 0 && --coming == 0)) {
    failed = true;
    throw std::bad_alloc();
  }
  const std::size_t rounded = (size + alignment - 1) / alignment * alignment;
  void* pointer = std::aligned_alloc(alignment, rounded == 0 ? alignment : rounded);
  if (pointer == nullptr) throw std::bad_alloc();
  return pointer;
}

void* allocated_or_null(std::size_t size) noexcept {
  try {
    return allocated(size, alignof(std::max_align_t));
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

}  // namespace

namespace weir::testing {

void fail_new_at(std::uint64_t n) noexcept {
  failed = false;
  coming = n;
}

void fail_each_new() noexcept {
  failed = false;
  all_fail = true;
}

bool stop_failing_new() noexcept {
  coming = 0;
  all_fail = false;
  return failed;
}

void start_counting_new() noexcept {
  counted = 0;
  counting = true;
}

std::uint64_t stop_counting_new() noexcept {
  counting = false;
  return counted;
}

}  // namespace weir::testing

void* operator new(std::size_t size) { return allocated(size, alignof(std::max_align_t)); }
void* operator new[](std::size_t size) { return allocated(size, alignof(std::max_align_t)); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return allocated(size, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return allocated(size, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t size, const std::nothrow_t& /*tag*/) noexcept {
  return allocated_or_null(size);
}
void* operator new[](std::size_t size, const std::nothrow_t& /*tag*/) noexcept {
  return allocated_or_null(size);
}
void operator delete(void* pointer) noexcept { std::free(pointer); }
void operator delete[](void* pointer) noexcept { std::free(pointer); }
void operator delete(void* pointer, std::size_t) noexcept { std::free(pointer); }
void operator delete[](void* pointer, std::size_t) noexcept { std::free(pointer); }
void operator delete(void* pointer, std::align_val_t) noexcept { std::free(pointer); }
void operator delete[](void* pointer, std::align_val_t) noexcept { std::free(pointer); }
void operator delete(void* pointer, std::size_t, std::align_val_t) noexcept { std::free(pointer); }
void operator delete[](void* pointer, std::size_t, std::align_val_t) noexcept {
  std::free(pointer);
}
