#pragma once

// Memory that libraries such as cuBLAS and NCCL got from the driver, outside our pools.

#include <cstdint>
#include <string>
#include <vector>

#include "tools/timeline/analysis/index.hpp"

namespace weir::timeline {

struct LibraryMemory {
  std::string library{};  ///< empty: unknown
  std::uint64_t bytes = 0;
  std::uint64_t blocks = 0;
};
struct DriverMemoryFigures {
  bool told = false;                     ///< a profiler reported driver memory
  std::uint64_t device_peak = 0;         ///< peak of device memory given out by the driver
  std::uint64_t peak_at = 0;             ///< begin of that peak
  std::vector<LibraryMemory> at_peak{};  ///< the owners at that time, most bytes first
  std::uint64_t pinned_peak = 0;         ///< peak of pinned host memory
  /// Of the driver's own pools, which serve cudaMallocAsync.
  std::uint64_t pools_used_peak = 0;
  std::uint64_t pools_reserved_peak = 0;
};
[[nodiscard]] DriverMemoryFigures driver_memory(const Index& index);

}  // namespace weir::timeline
