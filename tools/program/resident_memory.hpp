#pragma once

#include "allocator/base/bytes.hpp"

namespace weir {

/// Returns the physical memory of this process now, from /proc/self/statm; zero if that cannot be
/// read. Thread-safe.
[[nodiscard]] Bytes resident_memory() noexcept;

}  // namespace weir
