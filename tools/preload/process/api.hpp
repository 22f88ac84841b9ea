#pragma once

// What the library's borders (C functions, PyTorch's, NVTX ranges) call inside. Nothing throws,
// everything is thread-safe and works before CUDA is ready.

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "allocator/base/bytes.hpp"
#include "allocator/pool.hpp"

namespace weir::preload {

/// Begins a batch of the calling thread on its current device, device 0 without a context; may hold
/// it back here. Inside an open batch of the same thread, joins that one. False: skipped, nothing
/// to end.
[[nodiscard]] bool begin_batch(std::string_view kind) noexcept;
/// Ends what this thread's last begin_batch began; does nothing if none is open.
void end_batch() noexcept;

struct MemoryInfo {
  Bytes total;           ///< of the device
  Bytes budget;          ///< the program's part of it
  Bytes allocated;       ///< handed out by the pool
  Bytes awaiting;        ///< freed, with the device not known to be done
  Bytes cached;          ///< free, kept for reuse
  Bytes reserved;        ///< obtained from the driver: the sum of those
  Bytes passed;          ///< served by the driver and counted against the budget
  Bytes allocated_peak;  ///< since reset_peaks
  Bytes reserved_peak;   ///< since reset_peaks
};
/// Returns false if there is no such device or it was not used yet.
[[nodiscard]] bool memory_info(int device, MemoryInfo& info) noexcept;
/// Returns cached memory of `device` that it is done with to the driver, and the number of bytes.
/// -1 means every device. Zero if there is no such device or it was not used yet.
Bytes trim(int device) noexcept;
/// Sets the budget of `device`, from 1 MiB to its total; -1 means every device in use. Returns
/// false and changes nothing if it is out of range, there is no such device, or CUDA is not ready.
[[nodiscard]] bool set_budget(int device, Bytes budget) noexcept;
/// Limits the budget of `device` to a share of its total, 0 to 1; the lower of this and of what
/// set_budget or the settings say holds. False as of set_budget.
[[nodiscard]] bool set_fraction(int device, double fraction) noexcept;
/// Resets the peaks of MemoryInfo to the current levels. Returns false if there is no such device
/// or it was not used yet.
bool reset_peaks(int device) noexcept;

/// A piece of a device's memory, as PoolBlock has it.
struct MemoryBlock {
  PoolBlock block;
  std::uintptr_t segment = 0;  ///< address of its segment
  Bytes segment_size;
  CUstream stream = nullptr;  ///< null also for a stream that is gone
};
/// Returns the memory of the pools of `device`, ascending by address; see Pools::blocks. Empty if
/// there is no such device, it was not used yet, or host memory is short.
[[nodiscard]] std::vector<MemoryBlock> memory_blocks(int device) noexcept;
/// Lets `share` share memory that is allocated from now on.
void allow_sharing() noexcept;
/// How another process can reach a block's memory: by a handle of the driver's allocation, or by a
/// file for each page.
struct SharedMemory {
  std::uintptr_t base = 0;  ///< where the shared memory begins, at the block or before it
  Bytes size;
  Bytes page;  ///< zero: by `handle`
  CUipcMemHandle handle{};
  std::vector<int> files;  ///< of its pages, in order; open while the block is allocated
};
/// Shares the memory around the allocated block at `pointer`, its neighbours too. Returns nothing
/// if no pool has allocated it, or it cannot be shared.
[[nodiscard]] std::optional<SharedMemory> share(void* pointer) noexcept;
/// Returns `name=value (source)` for each setting, one per line; empty before CUDA is ready.
[[nodiscard]] std::string settings_text() noexcept;

/// Starts recording, to `file` if there is no recording yet; an empty name continues the existing
/// one. Returns false, with a line on standard error, if it cannot.
[[nodiscard]] bool start_timeline(std::string_view file) noexcept;
/// Stops recording; the file is then complete. Does nothing if nothing is recorded.
void stop_timeline() noexcept;

/// Allocates in the order of `stream` in the primary context of `device`; null if there is no
/// memory. For callers that name the device, whose context need not be current.
[[nodiscard]] void* allocate_on(int device, std::size_t bytes, CUstream stream) noexcept;
/// Frees what allocate_on returned, in the order of `stream`.
void free_on(int device, void* pointer, CUstream stream) noexcept;
/// Records that work on `stream` uses it too, so that its free waits for that. -1 means the device
/// that owns the memory, since PyTorch names none. Ignores memory that is not the pool's.
void record_use_on(int device, void* pointer, CUstream stream) noexcept;

}  // namespace weir::preload
