#include "tools/timeline/analysis/report/report_figures.hpp"

#include <algorithm>
#include <utility>

namespace weir::timeline {
namespace {

PoolFigures pool_figures(const Index& index, const PoolInfo& pool, std::size_t most) {
  PoolFigures figures{.peaks = pool_peaks(index, pool),
                      .fragmentation = fragmentation(index, pool)};
  const auto at_peak = [&](GroupBy by) {
    return std::move(
        holders_at(index, pool, std::span(&figures.peaks.peak_at, 1), by, most).front());
  };
  figures.by_label = at_peak(GroupBy::kLabel);
  figures.by_kind = at_peak(GroupBy::kKind);
  figures.by_site = at_peak(GroupBy::kSite);
  return figures;
}

std::vector<BatchFigures> most_stalled(const Index& index, std::size_t most) {
  std::vector<BatchFigures> stalled = batches(index);
  std::erase_if(stalled, [](const BatchFigures& batch) { return batch.stalls == 0; });
  std::ranges::stable_sort(stalled, std::ranges::greater{}, &BatchFigures::stalled_in_all);
  if (stalled.size() > most) stalled.resize(most);
  return stalled;
}

}  // namespace

ReportFigures report_figures(const Index& index, const ReportOptions& options) {
  const std::size_t most = options.most_rows;
  ReportFigures figures{.notes = notes(index),
                        .accounting = check_accounting(index, most),
                        .driver = driver_memory(index),
                        .failures = failures(index, most, most),
                        .devices = idle_by_cause(index, {.most_gaps = most}),
                        .streams = stream_busy(index),
                        .barriers = barriers(index),
                        .most_stalled = most_stalled(index, most),
                        .tables = task_tables(index)};
  SummaryParts parts{.devices = figures.devices};
  for (const PoolInfo& pool : index.pools()) {
    figures.pools.push_back(pool_figures(index, pool, most));
    parts.pools.push_back(figures.pools.back().peaks);
  }
  for (const StreamInfo& stream : index.streams()) figures.stream_names.push_back(describe(stream));
  figures.summary = summarize(index, parts);
  return figures;
}

}  // namespace weir::timeline
