#pragma once

/// @file
/// Reads allocation_log.hpp's files, even during writing and after a crash.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "allocator/log/allocation_log.hpp"

namespace weir {

/// A whole log.
struct AllocationLogContents {
  std::vector<AllocationRecord> records;  ///< by pool, in each pool's order
  std::uint64_t unix_ns = 0;              ///< when the log began
  std::uint64_t lost = 0;                 ///< events without room
  bool complete = false;  ///< false: the process runs, or ended without ending the log
};

/// Returns whether `bytes` begin a log.
[[nodiscard]] bool is_allocation_log(std::string_view bytes) noexcept;
/// Reads the log at `path`, a regular file; after a crash, up to the crash. Throws UsageError with
/// the file, the offset, the expected and the found value unless it is a log of this version.
[[nodiscard]] AllocationLogContents read_allocation_log(const std::string& path);
/// As read_allocation_log, of the file's `bytes`.
[[nodiscard]] AllocationLogContents parse_allocation_log(const std::string& path,
                                                         std::string_view bytes);

}  // namespace weir
