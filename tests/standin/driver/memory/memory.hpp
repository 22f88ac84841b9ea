#pragma once

// Device memory, which is host memory here. New memory has one pattern and freed memory another, so
// that reads too early or too late return nonsense.

#include <optional>

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

/// The same, as a file that another process can map. Only with WEIR_STANDIN_SHAREABLE=1, since it
/// costs two system calls.
struct SharedFile {
  std::uint64_t process = 0;
  int descriptor = -1;  ///< stays open with the block
  std::uint64_t bytes = 0;
};
void* take_shareable(std::size_t bytes);
/// Returns false for memory that is not from `take_shareable`.
bool give_shareable(const void* memory);

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
/// Allocates a block of `kind` in the current context and charges its device. Refuses what has no
/// room.
CUdeviceptr allocate_block(Call& call, BlockKind kind, std::size_t bytes);

/// Returns what `pool` reserves above `keep` and does not use to the device.
void trim_pool(Pool& pool, std::uint64_t keep);
/// Part of every synchronization: pools shrink to their thresholds.
void trim_pools(Driver& driver, const Device& device);
/// Refuses what exceeds the device or the pool's own limit.
void charge_pool(Pool& pool, std::size_t bytes);

// ---- The kind of memory behind a pointer.

enum class RangeKind {
  kPageable,  ///< nothing the driver knows
  kPinned,    ///< host memory, allocated by the driver or registered
  kDevice,
  kManaged,  ///< counts as either
};

struct Range {
  RangeKind kind = RangeKind::kPageable;
  std::uintptr_t start = 0;
  std::size_t bytes = 0;  ///< of the block, or of the pages mapped in one piece
  Device* device = nullptr;
  bool mapped = true;  ///< false: reserved addresses that count as device memory

  /// False if `count` bytes at `address` leave the range. Pageable memory has no known end.
  [[nodiscard]] bool holds(std::uintptr_t address, std::size_t count) const {
    return kind == RangeKind::kPageable || count <= start + bytes - address;
  }
};

Range find_range(Driver& driver, std::uintptr_t address);

// ---- Memory that graphs allocate. The capture of the allocation takes it from the device. It is
// released once the graph, its instances and launches are gone. Meanwhile a launch gives it to the
// program, and a free returns it to the graph.

/// One allocation. All holders drop it under the lock.
struct GraphMemory : std::enable_shared_from_this<GraphMemory> {
  GraphMemory() = default;
  GraphMemory(const GraphMemory&) = delete;
  GraphMemory& operator=(const GraphMemory&) = delete;
  ~GraphMemory();

  std::uintptr_t base = 0;
  bool given_inside = false;  ///< by the graph that takes it
};

/// Adds an allocation to `graph`, without a node for it.
CUdeviceptr allocate_in_graph(Call& call, Graph& graph, const std::shared_ptr<Pool>& pool,
                              std::size_t bytes);
/// Adds the free of an allocation, of this graph or of another one, without a node for it. `before`
/// is the graph that `graph` will be added to, or null.
void free_in_graph(Graph& graph, const Graph* before, const Block* block);

/// Gives a launch its memory, at the time of the call. Refuses it while the previous launch still
/// has it.
void launch_memory(Driver& driver, const GraphExec& exec);
/// The program frees memory of a launch.
void free_graph_memory(Block& block);
/// The same in a stream's order, as long as the memory must stay.
void free_graph_memory_on(const std::shared_ptr<Stream>& stream, Block& block);
/// The block goes.
void credit_graph_memory(const Block& block);

}  // namespace weir::standin
