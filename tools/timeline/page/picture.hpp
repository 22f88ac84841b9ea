#pragma once

// The picture of one process, at full or reduced detail.

#include <cstdint>
#include <vector>

#include "tools/timeline/analysis/report/report_figures.hpp"
#include "tools/timeline/page/activity_rows.hpp"
#include "tools/timeline/page/data.hpp"
#include "tools/timeline/page/memory.hpp"

namespace weir::timeline {

struct ProcessPicture {
  const Process* process = nullptr;
  std::uint64_t duration = 1;  ///< end of its last record, in nanoseconds
  Detail detail;
  ReportFigures figures;  ///< computed once for all parts of the page
  std::vector<MemoryPicture> pools;
  ActivityRows activity;
  Series batches;
};

[[nodiscard]] ProcessPicture draw(const Process& process, const Detail& detail);

/// Halves the detail.
void coarsen(ProcessPicture& picture);

}  // namespace weir::timeline
