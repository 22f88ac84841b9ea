#pragma once

// Limits for reading an untrusted file.

#include <cstddef>
#include <cstdint>

namespace weir::timeline {

/// A file that exceeds a limit is refused with a UsageError of one line.
struct ReadLimits {
  std::uint64_t max_records = 50'000'000;
  std::size_t max_processes = 4096;
  std::size_t max_names = 1U << 22U;          ///< per process
  std::uint64_t max_name_bytes = 1ULL << 30;  ///< per process, all names together
  std::size_t max_string = 1U << 20U;         ///< bytes of one text
  std::size_t max_depth = 64;                 ///< nesting of objects and arrays
  std::uint64_t max_bytes = 1ULL << 37;       ///< of the file, unpacked
};

}  // namespace weir::timeline
