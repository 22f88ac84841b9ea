#pragma once

// Memory that the driver gave to libraries, which no pool of ours sees: cuBLAS, NCCL and others.

#include <cstdint>
#include <string>
#include <vector>

#include "tools/timeline/analysis/index.hpp"

namespace weir::timeline {

struct LibraryMemory {
  std::string library{};  ///< empty: not told
  std::uint64_t bytes = 0;
  std::uint64_t blocks = 0;
};
struct DriverMemoryFigures {
  bool told = false;                     ///< a profiler told something
  std::uint64_t device_peak = 0;         ///< most device memory that the driver had given
  std::uint64_t peak_at = 0;             ///< when that began
  std::vector<LibraryMemory> at_peak{};  ///< who had it then, most bytes first
  std::uint64_t pinned_peak = 0;         ///< of memory of the host
  /// Of the driver's own pools, from which cudaMallocAsync serves.
  std::uint64_t pools_used_peak = 0;
  std::uint64_t pools_reserved_peak = 0;
};
[[nodiscard]] DriverMemoryFigures driver_memory(const Index& index);

}  // namespace weir::timeline
