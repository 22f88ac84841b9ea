#pragma once

// Formats amounts of memory in facts.

#include <cstdint>
#include <string>

#include "allocator/base/bytes.hpp"

namespace weir::gpu_check {

/// Returns how much of the previously free memory was taken. Negative if others gave back more
/// meanwhile.
[[nodiscard]] inline std::string bytes_taken(std::uint64_t before, std::uint64_t after) {
  return before >= after ? format_bytes({before - after}) : "-" + format_bytes({after - before});
}

}  // namespace weir::gpu_check
