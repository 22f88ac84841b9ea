#pragma once

// Puts Weir's plug into the PyTorch of this process, if there is one for its version.

namespace weir::preload {

/// Opens the plug for the PyTorch whose libc10_cuda has the code at `address`, and has it take the
/// place of PyTorch's allocator. Call when a device is there and before that allocator is
/// initialised. Done once in a process; other threads wait for it.
///
/// Where WEIR_TORCH is against it, nothing is done. Where nothing fits, or the user chose another
/// allocator, one line says so. PyTorch then allocates as without a plug.
void plug_into_torch(const void* address) noexcept;

}  // namespace weir::preload
