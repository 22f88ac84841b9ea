#pragma once

// Formats amounts of memory in facts.

#include <cstdint>
#include <string>

#include "allocator/base/bytes.hpp"

namespace weir::gpu_check {

[[nodiscard]] inline std::string in_bytes(std::uint64_t count) { return format_bytes({count}); }

/// Returns how much of the previously free memory was taken. Negative if others gave back more
/// meanwhile.
[[nodiscard]] inline std::string bytes_taken(std::uint64_t before, std::uint64_t after) {
  return before >= after ? in_bytes(before - after) : "-" + in_bytes(after - before);
}

}  // namespace weir::gpu_check
