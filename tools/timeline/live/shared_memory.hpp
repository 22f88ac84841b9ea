#pragma once

// Copies to and from a mapping of a file that others may truncate. The kernel does the copying, so
// that missing memory is an error and not a signal.

#include <cstddef>

namespace weir::timeline {

/// Copies `size` bytes to `place` in a shared mapping. Uses a plain copy if the system forbids the
/// kernel's copy (a sandbox).
void store_shared(void* place, const void* from, std::size_t size) noexcept;
/// Copies `size` bytes from `place`. Returns false if some are missing, or if the system forbids
/// the copy.
[[nodiscard]] bool load_shared(void* to, const void* place, std::size_t size) noexcept;

}  // namespace weir::timeline
