#pragma once

// Device memory, which is host memory here. New memory is filled with one pattern and freed memory
// with another, so that who reads too early or too late reads nonsense.

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

/// Host memory with the pattern for new memory; null when there is none. Not counted anywhere.
void* take_memory(BlockKind kind, std::size_t bytes);
void give_memory(BlockKind kind, std::uintptr_t address, std::size_t bytes);

/// The block that `address` lies in, or null. `base` receives where it starts.
Block* find_block(Driver& driver, std::uintptr_t address, std::uintptr_t* base = nullptr);
/// Adds the block that `address` lies in, if it does in one.
void touch(Driver& driver, std::uintptr_t address, std::vector<Touch>& touches);
/// Whether all of these blocks are still there.
[[nodiscard]] bool are_there(const Driver& driver, const std::vector<Touch>& touches);
/// Gives the block at `base` back to whom it was charged.
void release_block(Driver& driver, std::uintptr_t base);
void free_blocks_of(Driver& driver, const Context& context);
/// Takes away every mapping, page and reservation.
void forget_pages(Driver& driver);
/// A block at `base`, charged already.
void add_block(Driver& driver, std::uintptr_t base, Block block);
/// A block of `kind` in the current context and charged to its device. What cuMemAlloc and its like
/// have to say: success, or that there is no room.
CUresult allocate_block(Call& call, BlockKind kind, std::size_t bytes, CUdeviceptr* pointer);

/// What of `pool` is reserved beyond `keep` and not used goes back to the device.
void trim_pool(Pool& pool, std::uint64_t keep);
/// What every synchronization does: pools shrink to their thresholds.
void trim_pools(Driver& driver, const Device& device);
/// False when the device or the pool's own limit has no room.
[[nodiscard]] bool charge_pool(Pool& pool, std::size_t bytes);

}  // namespace weir::standin
