#pragma once

// The picture of one process, at full or reduced detail.

#include <cstdint>
#include <string>
#include <vector>

#include "tools/timeline/analysis/barriers.hpp"
#include "tools/timeline/analysis/holders.hpp"
#include "tools/timeline/analysis/idle.hpp"
#include "tools/timeline/analysis/index.hpp"
#include "tools/timeline/analysis/report/summary.hpp"
#include "tools/timeline/analysis/tasks.hpp"
#include "tools/timeline/page/activity_rows.hpp"
#include "tools/timeline/page/data.hpp"
#include "tools/timeline/page/memory.hpp"

namespace weir::timeline {

// The analysis of one process, computed once for all parts of its page.

/// One pool at the peak of its held bytes.
struct PoolPeak {
  std::string name;
  std::uint16_t source = 0;
  std::uint64_t at = 0;  ///< in nanoseconds
  Fragmentation fragmentation{};
  Holding by_label{};
  Holding by_kind{};
  Holding by_site{};
};

struct Findings {
  Summary summary;
  std::vector<PoolPeak> pools;  ///< in the order of index.pools()
  std::vector<Failure> failures;
  std::vector<DeviceIdle> devices;
  std::vector<std::string> device_names;  ///< names of `devices`
  std::vector<BarrierSite> barriers;
  std::vector<TaskTable> tasks;
  std::vector<std::string> task_names;  ///< names of `tasks`
  std::vector<std::string> notes;       ///< notes for readers of the timeline
};
[[nodiscard]] Findings findings_of(const Process& process);

struct ProcessPicture {
  const Process* process = nullptr;
  std::uint64_t duration = 1;  ///< end of its last record, in nanoseconds
  Detail detail;
  Findings findings;
  std::vector<MemoryPicture> pools;
  ActivityRows activity;
  Series batches;
};

[[nodiscard]] ProcessPicture draw(const Process& process, const Detail& detail);

/// Halves the detail.
void coarsen(ProcessPicture& picture);

}  // namespace weir::timeline
