#pragma once

// Records work on a device as programs do, and reads the file back.

#include <functional>
#include <string>
#include <vector>

#include "allocator/base/setting.hpp"
#include "tools/gpu_check/timeline/compare.hpp"

namespace weir::gpu_check {

struct RecordedWork {
  std::string no_cupti;  ///< there is none to record with, and where it was looked for
  std::string refused;   ///< CUPTI is there and does not record: why
  TimelineComparison comparison;
};

/// Runs `work`, which returns what it launched, while this process's timeline with CUPTI's records
/// is written into `file`. Where there are none the work is run all the same. UsageError for a file
/// that cannot be written or read.
[[nodiscard]] RecordedWork record_work(const std::string& file, const Environment& environment,
                                       const std::function<std::vector<Stretch>()>& work);

}  // namespace weir::gpu_check
