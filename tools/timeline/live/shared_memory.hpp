#pragma once

// Copies to and from a mapping of a file that others may cut. The kernel makes them: where the
// memory is not there any more, that is an error and no signal.

#include <cstddef>

namespace weir::timeline {

/// Copies `size` bytes to `place`, which is in a shared mapping. Where the system does not allow
/// the kernel's copy (a sandbox), it is a plain one.
void store_shared(void* place, const void* from, std::size_t size) noexcept;
/// Copies `size` bytes from `place`; false where not all of them are there, or the system does not
/// allow it.
[[nodiscard]] bool load_shared(void* to, const void* place, std::size_t size) noexcept;

}  // namespace weir::timeline
