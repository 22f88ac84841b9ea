#pragma once

// Records work on a device as programs do, and reads the file.

#include <functional>
#include <string>
#include <vector>

#include "allocator/base/setting.hpp"
#include "tools/gpu_check/timeline_check/compare.hpp"

namespace weir::gpu_check {

struct RecordedWork {
  std::string no_cupti;  ///< CUPTI was not found: where it was searched
  std::string refused;   ///< CUPTI was found but does not record: why
  TimelineComparison comparison;
};

/// Runs `work`, which returns what it launched, while writing this process's timeline with CUPTI's
/// records into `file`. Runs `work` even without CUPTI. Throws UsageError if the file cannot be
/// written or read.
[[nodiscard]] RecordedWork record_work(const std::string& file, const Environment& environment,
                                       const std::function<std::vector<Stretch>()>& work);

}  // namespace weir::gpu_check
