#pragma once

/// @file
/// Reads what allocation_log.hpp writes, also while it is written and after a crash.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "allocator/log/allocation_log.hpp"

namespace weir {

/// A whole log.
struct AllocationLogContents {
  std::vector<AllocationRecord> records;  ///< by pool, and in the order of each
  std::uint64_t unix_ns = 0;              ///< when the log began
  std::uint64_t lost = 0;                 ///< events for which there was no room
  bool complete = false;  ///< false: the process ended without ending the log, or runs
};

/// Whether these are the first bytes of a log.
[[nodiscard]] bool is_allocation_log(std::string_view bytes) noexcept;
/// Reads the log at `path`, a regular file. UsageError naming the file, the offset, what was
/// expected and what was found, unless it is a log of this version. A log that a crash cut short is
/// read up to the crash.
[[nodiscard]] AllocationLogContents read_allocation_log(const std::string& path);
/// The same of `bytes` that were read from there.
[[nodiscard]] AllocationLogContents parse_allocation_log(const std::string& path,
                                                         std::string_view bytes);

}  // namespace weir
