#pragma once

// Chooses a program's device and its memory, and makes the host ready for it. Thread-safe.

#include <string>
#include <string_view>

#include "allocator/base/bytes.hpp"
#include "allocator/base/setting.hpp"
#include "allocator/pool_options.hpp"

namespace weir {

/// Checks for `cpu`, `cuda`, `cuda:N` or `auto`. Otherwise throws UsageError with `name`.
[[nodiscard]] std::string parse_device(std::string_view name, std::string_view text);

/// Returns a device for open_device: `auto` becomes `cuda` if a GPU is usable and otherwise `cpu`,
/// and the source says why. Throws UsageError (one line with what to do) for a GPU that does not
/// exist.
[[nodiscard]] Setting<std::string> choose_device(const Setting<std::string>& asked);

/// Returns the most memory that the device can get: the machine's, or the GPU's. Throws UsageError
/// for a GPU that does not exist.
[[nodiscard]] Bytes most_device_memory(std::string_view device);
/// Returns the default memory: half of the machine's, or all of the GPU's. UsageError as above.
[[nodiscard]] Bytes default_device_memory(std::string_view device);

/// Gives the BLAS its memory, if the device is on the host; a GPU does not need it. Call it before
/// the run starts a thread: where address space is short, a thread's first allocation may take what
/// was free when the BLAS looked, and OpenBLAS then tries again forever. Later calls do nothing.
/// Throws BlasMemoryError.
void start_blas(std::string_view device);

/// Returns which of MXNet's variables apply to it. Throws UsageError for an unknown name.
[[nodiscard]] MxnetContext mxnet_context(std::string_view device);

}  // namespace weir
