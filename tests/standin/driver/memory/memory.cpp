#include "tests/standin/driver/memory/memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <utility>

namespace weir::standin {
namespace {

/// From this size on device memory is mapped, not from the heap, and only its ends get the pattern:
/// a program may request most of a device.
constexpr std::size_t kLarge = std::size_t{16} << 20;

/// Number of freed mappings that stay inaccessible: access to one is a fault, and does not reach
/// new memory of another block.
constexpr std::size_t kKept = 16;

bool is_mapped(BlockKind kind, std::size_t bytes) {
  // The driver's host memory is whole pages, never from the heap: a program's malloc may manage its
  // memory by address, and would take its own memory for another's.
  return kind == BlockKind::kHost || bytes >= kLarge;
}

/// Takes unique addresses without memory.
void* take_addresses(std::size_t bytes) {
  void* memory = mmap(nullptr, round_up(bytes, kAlignment), PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

void put_out_of_reach(void* memory, std::size_t bytes) {
  static std::deque<std::pair<void*, std::size_t>> kept;
  if (mmap(memory, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
           0) == MAP_FAILED) {
    munmap(memory, bytes);
    return;
  }
  kept.emplace_back(memory, bytes);
  if (kept.size() <= kKept) return;
  munmap(kept.front().first, kept.front().second);
  kept.pop_front();
}

void fill(void* memory, unsigned char byte, std::size_t bytes) {
  if (bytes < kLarge) {
    std::memset(memory, byte, bytes);
    return;
  }
  constexpr std::size_t kEnds = std::size_t{1} << 20;
  std::memset(memory, byte, kEnds);
  std::memset(static_cast<char*>(memory) + bytes - kEnds, byte, kEnds);
}

/// For an address without a page.
Range find_reserved(Driver& driver, std::uintptr_t address) {
  auto after = driver.reservations.upper_bound(address);
  if (!driver.reserved_is_device || after == driver.reservations.begin()) return {};
  const auto& [start, bytes] = *std::prev(after);
  if (address - start >= bytes) return {};
  return {RangeKind::kDevice, start, bytes, &driver.devices.front(), false};
}

}  // namespace

void* take_memory(BlockKind kind, std::size_t bytes) {
  bytes = round_up(bytes, kAlignment);
  void* memory = nullptr;
  if (kind == BlockKind::kDevice && driver().shareable) {
    memory = take_shareable(bytes);
  } else if (!is_mapped(kind, bytes)) {
    memory = std::aligned_alloc(kAlignment, bytes);
  } else {
    memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) memory = nullptr;
  }
  if (memory != nullptr) fill(memory, kNewByte, bytes);
  return memory;
}

void give_memory(BlockKind kind, std::uintptr_t address, std::size_t bytes) {
  bytes = round_up(bytes, kAlignment);
  auto* memory = reinterpret_cast<void*>(address);
  if (give_shareable(memory)) {
    put_out_of_reach(memory, bytes);
  } else if (!is_mapped(kind, bytes)) {
    fill(memory, kFreedByte, bytes);
    // Otherwise the compiler would drop writes that nobody may read.
    asm volatile("" : : "r"(memory) : "memory");
    std::free(memory);
  } else {
    put_out_of_reach(memory, bytes);
  }
}

Block* find_block(Driver& driver, std::uintptr_t address, std::uintptr_t* base) {
  auto after = driver.blocks.upper_bound(address);
  if (after == driver.blocks.begin()) return nullptr;
  const auto found = std::prev(after);
  if (address - found->first >= std::max<std::size_t>(found->second.bytes, 1)) return nullptr;
  if (base != nullptr) *base = found->first;
  return &found->second;
}

void touch(Driver& driver, std::uintptr_t address, std::vector<Touch>& touches) {
  std::uintptr_t base = 0;
  const Block* block = find_block(driver, address, &base);
  if (block != nullptr) touches.push_back({base, block->number});
}

bool are_there(const Driver& driver, const std::vector<Touch>& touches) {
  return std::all_of(touches.begin(), touches.end(), [&](const Touch& touched) {
    const auto found = driver.blocks.find(touched.base);
    return found != driver.blocks.end() && found->second.number == touched.number;
  });
}

void add_block(Driver& driver, std::uintptr_t base, Block block) {
  block.number = driver.next_block++;
  driver.blocks.emplace(base, std::move(block));
}

CUdeviceptr allocate_block(Call& call, BlockKind kind, std::size_t bytes) {
  require(bytes <= SIZE_MAX - kAlignment, CUDA_ERROR_OUT_OF_MEMORY);
  Device& device = *call.context->device;
  const bool anywhere = kind == BlockKind::kManaged && call.driver.concurrent_managed;
  const std::size_t charged = anywhere ? 0 : round_up(bytes, kAlignment);
  device.charge(charged);
  const bool addresses_only = call.driver.addresses_only && kind == BlockKind::kDevice;
  void* memory = addresses_only ? take_addresses(bytes) : take_memory(kind, bytes);
  if (memory == nullptr) device.credit(charged);
  require(memory != nullptr, CUDA_ERROR_OUT_OF_MEMORY);
  const auto pointer = reinterpret_cast<CUdeviceptr>(memory);
  add_block(call.driver, pointer,
            {.kind = kind,
             .bytes = bytes,
             .charged = charged,
             .context = call.context,
             .addresses_only = addresses_only});
  return pointer;
}

void release_block(Driver& driver, std::uintptr_t base) {
  const auto found = driver.blocks.find(base);
  if (found == driver.blocks.end()) return;
  const Block block = found->second;
  driver.blocks.erase(found);
  switch (block.kind) {
    case BlockKind::kDevice:
    case BlockKind::kManaged:
      block.context->device->credit(block.charged);
      break;
    case BlockKind::kGraph:
      credit_graph_memory(block);
      break;
    case BlockKind::kPooled:
      block.pool->used -= block.charged;
      if (block.pool->destroyed) trim_pool(*block.pool, 0);
      break;
    case BlockKind::kHost:
      break;
    case BlockKind::kRegistered:
      return;
    case BlockKind::kImported:
      munmap(reinterpret_cast<void*>(base), block.bytes);
      return;
  }
  if (block.addresses_only) {
    munmap(reinterpret_cast<void*>(base), round_up(block.bytes, kAlignment));
  } else {
    give_memory(block.kind, base, block.bytes);
  }
}

void free_blocks_of(Driver& driver, const Context& context) {
  std::vector<std::uintptr_t> bases;
  for (const auto& [base, block] : driver.blocks) {
    if (block.context == &context) bases.push_back(base);
  }
  for (const std::uintptr_t base : bases) release_block(driver, base);
}

void charge_pool(Pool& pool, std::size_t bytes) {
  const std::size_t idle = pool.reserved - pool.used;
  if (bytes > idle) {
    const std::size_t more = round_up(bytes - idle, kPage);
    require(pool.max_size == 0 || pool.reserved + more <= pool.max_size, CUDA_ERROR_OUT_OF_MEMORY);
    pool.device->charge(more);
    pool.reserved += more;
    pool.reserved_high = std::max(pool.reserved_high, pool.reserved);
  }
  pool.used += bytes;
  pool.used_high = std::max(pool.used_high, pool.used);
}

void trim_pool(Pool& pool, std::uint64_t keep) {
  const std::size_t floor = std::max<std::size_t>(round_up(pool.used, kPage), keep);
  if (pool.reserved <= floor) return;
  pool.device->credit(pool.reserved - floor);
  pool.reserved = floor;
}

void trim_pools(Driver& driver, const Device& device) {
  for (auto& [handle, pool] : driver.pools.all()) {
    if (pool->device == &device) trim_pool(*pool, pool->release_threshold);
  }
}

Range find_range(Driver& driver, std::uintptr_t address) {
  std::uintptr_t base = 0;
  if (const Block* block = find_block(driver, address, &base); block != nullptr) {
    const bool of_device = is_of_device(block->kind) || block->kind == BlockKind::kImported;
    RangeKind kind = of_device ? RangeKind::kDevice : RangeKind::kPinned;
    if (block->kind == BlockKind::kManaged) kind = RangeKind::kManaged;
    return {kind, base, block->bytes, block->pool ? block->pool->device : block->context->device};
  }
  auto after = driver.mappings.upper_bound(address);
  if (after == driver.mappings.begin()) return find_reserved(driver, address);
  auto found = std::prev(after);
  if (address - found->first >= found->second.bytes) return find_reserved(driver, address);
  Range range{RangeKind::kDevice, found->first, found->second.bytes,
              driver.pages.at(found->second.pages).device};
  // To a copy, neighbouring pages are one range.
  for (; after != driver.mappings.end() && after->first == range.start + range.bytes; ++after) {
    range.bytes += after->second.bytes;
  }
  while (found != driver.mappings.begin()) {
    const auto before = std::prev(found);
    if (before->first + before->second.bytes != range.start) break;
    range.start = before->first;
    range.bytes += before->second.bytes;
    found = before;
  }
  return range;
}

}  // namespace weir::standin
