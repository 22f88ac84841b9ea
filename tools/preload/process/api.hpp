#pragma once

// What the borders of the library (its C functions, PyTorch's, NVTX ranges) ask of its inside.
// Nothing here throws, all of it is thread-safe, and all of it answers before CUDA is ready too.

#include <cuda.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "allocator/base/bytes.hpp"

namespace weir::preload {

/// Begins a batch of the calling thread on its current device, held back here if anywhere. Inside
/// an open batch of the same thread it joins that one. False: passed over, nothing to end.
[[nodiscard]] bool begin_batch(std::string_view kind) noexcept;
/// Ends what the last begin_batch of this thread began; nothing where there is none.
void end_batch() noexcept;

struct MemoryInfo {
  Bytes total;      ///< of the device
  Bytes budget;     ///< of it, the program's
  Bytes allocated;  ///< handed out by the pool
  Bytes awaiting;   ///< freed, and the device is not known to be done with it
  Bytes cached;     ///< free, kept
  Bytes reserved;   ///< obtained from the driver: the sum of those
  Bytes passed;     ///< served by the driver and counted against the budget
};
/// False: there is no such device, or nothing was done on it yet.
[[nodiscard]] bool memory_info(int device, MemoryInfo& info) noexcept;
/// Gives cached memory of `device` that it is done with back to the driver; how much. -1 stands for
/// every device; nothing where there is no such device or nothing was done on it yet.
Bytes trim(int device) noexcept;
/// Another budget for `device`, from 1 MiB to its total; -1 stands for every device in use. False,
/// with nothing changed, where it is out of that range, there is no such device, or CUDA is not
/// ready.
[[nodiscard]] bool set_budget(int device, Bytes budget) noexcept;
/// `name=value (source)` for each setting, joined by newlines; empty before CUDA is ready.
[[nodiscard]] std::string settings_text() noexcept;

/// Records from here on, to `file` where nothing is recorded yet; empty goes on with what is there.
/// False, said on standard error, where it does not.
[[nodiscard]] bool start_timeline(std::string_view file) noexcept;
/// Stops recording; what was recorded is in the file. Nothing where nothing is recorded.
void stop_timeline() noexcept;

/// Memory in the order of `stream` of `device`, in its primary context; null where there is none to
/// be had. For callers that name the device and need not have its context current.
[[nodiscard]] void* allocate_on(int device, std::size_t bytes, CUstream stream) noexcept;
/// Frees what allocate_on gave, in the order of `stream`.
void free_on(int device, void* pointer, CUstream stream) noexcept;
/// Work on `stream` uses it too, so its free will await that as well. -1 stands for the device that
/// owns the memory: PyTorch names none. Nothing for memory that is not the pool's.
void record_use_on(int device, void* pointer, CUstream stream) noexcept;

}  // namespace weir::preload
