#pragma once

// Device memory, which is host memory here. New memory has one pattern and freed memory another, so
// that reads too early or too late return nonsense.

#include "tests/standin/driver/driver.hpp"

namespace weir::standin {

inline constexpr unsigned char kNewByte = 0xA5;
inline constexpr unsigned char kFreedByte = 0xDD;
inline constexpr std::size_t kAlignment = 512;
inline constexpr std::size_t kPage = std::size_t{2} << 20;  ///< of cuMemCreate and of pools

constexpr std::size_t round_up(std::size_t bytes, std::size_t to) {
  return (bytes + to - 1) / to * to;
}

/// Whether a block counts against a device, and is freed by cuMemFree.
constexpr bool is_of_device(BlockKind kind) {
  return kind != BlockKind::kHost && kind != BlockKind::kRegistered && kind != BlockKind::kImported;
}

/// Host memory with the pattern for new memory; null if there is none. Not counted.
void* take_memory(BlockKind kind, std::size_t bytes);
void give_memory(BlockKind kind, std::uintptr_t address, std::size_t bytes);

/// The block that contains `address`, or null. `base` receives its start.
Block* find_block(Driver& driver, std::uintptr_t address, std::uintptr_t* base = nullptr);
/// Adds the block that contains `address`, if any.
void touch(Driver& driver, std::uintptr_t address, std::vector<Touch>& touches);
/// Whether all of these blocks still exist.
[[nodiscard]] bool are_there(const Driver& driver, const std::vector<Touch>& touches);
/// Releases the block at `base` and its charge.
void release_block(Driver& driver, std::uintptr_t base);
void free_blocks_of(Driver& driver, const Context& context);
/// Removes every mapping, page and reservation.
void forget_pages(Driver& driver);
/// Adds a block at `base` that is already charged.
void add_block(Driver& driver, std::uintptr_t base, Block block);
/// Allocates a block of `kind` in the current context and charges its device. Returns the result of
/// cuMemAlloc and similar functions: success, or no room.
CUresult allocate_block(Call& call, BlockKind kind, std::size_t bytes, CUdeviceptr* pointer);

/// Returns what `pool` reserves above `keep` and does not use to the device.
void trim_pool(Pool& pool, std::uint64_t keep);
/// Part of every synchronization: pools shrink to their thresholds.
void trim_pools(Driver& driver, const Device& device);
/// Returns false if the device or the pool's own limit has no room.
[[nodiscard]] bool charge_pool(Pool& pool, std::size_t bytes);

}  // namespace weir::standin
