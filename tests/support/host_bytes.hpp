#pragma once

#include <malloc.h>

#include <cstddef>

namespace weir::testing {

/// What the process has from the heap. Under a sanitizer it says nothing.
[[nodiscard]] inline std::size_t host_bytes() { return mallinfo2().uordblks + mallinfo2().hblkhd; }

}  // namespace weir::testing
