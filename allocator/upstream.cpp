#include "allocator/upstream.hpp"

#include <sys/mman.h>

#include <cstdlib>

namespace weir {
namespace {

constexpr Bytes padded(Bytes size) {
  return {(size.count + Upstream::kAlignment - 1) / Upstream::kAlignment * Upstream::kAlignment};
}

}  // namespace

bool CapacityGauge::take(Bytes size) noexcept {
  std::uint64_t used = used_.load(std::memory_order_relaxed);
  do {
    if (size > capacity_ || used > capacity_.count - size.count) return false;
  } while (!used_.compare_exchange_weak(used, used + size.count, std::memory_order_relaxed));
  return true;
}

void* HostUpstream::allocate(Bytes size) {
  if (!gauge_.take(size)) return nullptr;
  void* pointer = std::aligned_alloc(kAlignment, padded(size).count);
  if (pointer == nullptr) gauge_.give_back(size);
  return pointer;
}

void HostUpstream::deallocate(void* pointer, Bytes size) noexcept {
  std::free(pointer);
  gauge_.give_back(size);
}

void* MappedUpstream::allocate(Bytes size) {
  if (!gauge_.take(size)) return nullptr;
  void* pointer =
      mmap(nullptr, size.count, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pointer != MAP_FAILED) return pointer;
  gauge_.give_back(size);
  return nullptr;
}

void MappedUpstream::deallocate(void* pointer, Bytes size) noexcept {
  munmap(pointer, size.count);
  gauge_.give_back(size);
}

void* SimulatedUpstream::allocate(Bytes size) {
  if (!gauge_.take(size)) return nullptr;
  const std::uint64_t address =
      next_address_.fetch_add(padded(size).count, std::memory_order_relaxed);
  return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr): an address only
}

void SimulatedUpstream::deallocate(void* /*pointer*/, Bytes size) noexcept {
  gauge_.give_back(size);
}

}  // namespace weir
