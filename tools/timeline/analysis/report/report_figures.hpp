#pragma once

// Collects all figures of a process that a report shows.

#include <cstdint>
#include <string>
#include <vector>

#include "tools/timeline/analysis/barriers.hpp"
#include "tools/timeline/analysis/counters.hpp"
#include "tools/timeline/analysis/holders.hpp"
#include "tools/timeline/analysis/report/report.hpp"
#include "tools/timeline/analysis/report/summary.hpp"
#include "tools/timeline/analysis/tasks.hpp"

namespace weir::timeline {

/// One pool of a report.
struct PoolFigures {
  PoolPeaks peaks{};
  Fragmentation fragmentation{};
  Holding by_label{};  ///< at the peak of held bytes
  Holding by_kind{};   ///< at the same time
  Holding by_site{};   ///< at the same time
};
struct ReportFigures {
  Summary summary{};
  std::vector<std::string> notes{};
  AccountingCheck accounting{};
  std::vector<PoolFigures> pools{};
  DriverMemoryFigures driver{};
  std::vector<Failure> failures{};
  std::vector<DeviceIdle> devices{};
  std::vector<std::string> stream_names{};  ///< the names of `streams`
  std::vector<StreamBusy> streams{};
  std::vector<BarrierSite> barriers{};
  std::vector<BatchFigures> most_stalled{};  ///< stalled batches, the longest first
  std::vector<TaskTable> tables{};
};
[[nodiscard]] ReportFigures report_figures(const Index& index, const ReportOptions& options);

}  // namespace weir::timeline
