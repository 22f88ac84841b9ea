#include "allocator/memory/upstream.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "allocator/memory/page_source_memfd.hpp"
#include "allocator/memory/page_source_simulated.hpp"

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

std::size_t CapacityGauge::take_up_to(std::size_t count, Bytes size) noexcept {
  std::uint64_t used = used_.load(std::memory_order_relaxed);
  std::uint64_t taken = 0;
  do {
    taken = std::min<std::uint64_t>(count, minus_or_zero(capacity_, {used}).count / size.count);
  } while (
      !used_.compare_exchange_weak(used, used + taken * size.count, std::memory_order_relaxed));
  return taken;
}

PageSource* HostMemoryUpstream::pages() noexcept {
  return pages_.get([this] { return std::make_unique<MemfdPages>(gauge_); });
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

PageSource* SimulatedUpstream::pages() noexcept {
  return pages_.get(
      [this] { return std::make_unique<SimulatedPages>(gauge_, next_address_, page_size_); });
}

}  // namespace weir
