#include "allocator/adapt/host_memory_resource.hpp"

#include <cstdint>
#include <cstring>
#include <limits>

#include "allocator/memory/upstream.hpp"

namespace weir {
namespace {

constexpr std::size_t kBlocks = Upstream::kAlignment;

/// The block of an over-aligned request begins at least kBlocks before it. Its address stands right
/// before the request's.
void* aligned_in(void* block, std::size_t alignment) noexcept {
  const auto begin = reinterpret_cast<std::uintptr_t>(block);
  const std::uintptr_t first = begin + kBlocks;
  const std::size_t offset = kBlocks + (alignment - first % alignment) % alignment;
  char* const aligned = static_cast<char*>(block) + offset;
  std::memcpy(aligned - sizeof block, &block, sizeof block);
  return aligned;
}

void* block_of(void* aligned) noexcept {
  void* block = nullptr;
  std::memcpy(&block, static_cast<char*>(aligned) - sizeof block, sizeof block);
  return block;
}

}  // namespace

void* HostMemoryResource::do_allocate(std::size_t bytes, std::size_t alignment) {
  const std::size_t more = alignment > kBlocks ? alignment + kBlocks : 0;
  // A sum that does not fit is larger than any pool.
  const std::size_t wanted = bytes > std::numeric_limits<std::size_t>::max() - more
                                 ? std::numeric_limits<std::size_t>::max()
                                 : bytes + more;
  try {
    // A container may ask for 0 bytes, and takes null for a failure.
    void* const block = pool_.allocate({wanted == 0 ? 1 : wanted}, stream_, "host");
    return more == 0 ? block : aligned_in(block, alignment);
  } catch (const OutOfMemory& error) {
    throw HostOutOfMemory(error);
  }
}

void HostMemoryResource::do_deallocate(void* pointer, std::size_t /*bytes*/,
                                       std::size_t alignment) {
  pool_.deallocate(alignment > kBlocks ? block_of(pointer) : pointer, stream_);
}

bool HostMemoryResource::do_is_equal(const std::pmr::memory_resource& other) const noexcept {
  const auto* const same = dynamic_cast<const HostMemoryResource*>(&other);
  return same != nullptr && &same->pool_ == &pool_ && same->stream_ == stream_;
}

}  // namespace weir
