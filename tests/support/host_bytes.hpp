#pragma once

#include <malloc.h>

#include <cstddef>

namespace weir::testing {

/// Bytes that the process has from the heap. Meaningless under a sanitizer.
[[nodiscard]] inline std::size_t host_bytes() { return mallinfo2().uordblks + mallinfo2().hblkhd; }

}  // namespace weir::testing
