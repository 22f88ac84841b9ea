#pragma once

// Collects all figures of a process that a report or a page shows.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tools/timeline/analysis/barriers.hpp"
#include "tools/timeline/analysis/counters.hpp"
#include "tools/timeline/analysis/holders.hpp"
#include "tools/timeline/analysis/report/summary.hpp"
#include "tools/timeline/analysis/tasks.hpp"

namespace weir::timeline {

/// One pool.
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
  std::vector<PoolFigures> pools{};
  std::vector<Failure> failures{};
  std::vector<DeviceIdle> devices{};
  std::vector<BarrierSite> barriers{};
  std::vector<TaskTable> tables{};
  // Not for a page:
  AccountingCheck accounting{};
  DriverMemoryFigures driver{};
  std::vector<std::string> stream_names{};  ///< the names of `streams`
  std::vector<StreamBusy> streams{};
  std::vector<StalledBatch> most_stalled{};  ///< the longest first
};
/// How much to list.
struct FigureLimits {
  std::size_t rows = 0;      ///< holders of each pool, and stalled batches
  std::size_t failures = 0;  ///< failed requests
  std::size_t gaps = 0;      ///< gaps of each device
  bool page = false;         ///< without what a page does not show; see ReportFigures
};
[[nodiscard]] ReportFigures report_figures(const Index& index, const FigureLimits& limits);

}  // namespace weir::timeline
