#pragma once

// The analysis of one process, computed once for all parts of its page.

#include <string>
#include <vector>

#include "tools/timeline/analysis/barriers.hpp"
#include "tools/timeline/analysis/fragmentation.hpp"
#include "tools/timeline/analysis/holders.hpp"
#include "tools/timeline/analysis/idle.hpp"
#include "tools/timeline/analysis/index.hpp"
#include "tools/timeline/analysis/report/summary.hpp"
#include "tools/timeline/analysis/tasks.hpp"

namespace weir::timeline {

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

}  // namespace weir::timeline
