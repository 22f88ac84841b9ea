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

}  // namespace

ReportFigures report_figures(const Index& index, const FigureLimits& limits) {
  ReportFigures figures{.notes = notes(index),
                        .failures = failures(index, limits.failures, limits.rows),
                        .devices = idle_by_cause(index, {.most_gaps = limits.gaps}),
                        .barriers = barriers(index),
                        .tables = task_tables(index)};
  SummaryParts parts{.devices = figures.devices};
  for (const PoolInfo& pool : index.pools()) {
    figures.pools.push_back(pool_figures(index, pool, limits.rows));
    parts.pools.push_back(figures.pools.back().peaks);
  }
  figures.summary = summarize(index, parts);
  if (limits.page) return figures;
  figures.accounting = check_accounting(index);
  figures.driver = driver_memory(index);
  for (const StreamInfo& stream : index.streams()) figures.stream_names.push_back(describe(stream));
  figures.streams = stream_busy(index);
  figures.most_stalled = stalled_batches(index);
  if (figures.most_stalled.size() > limits.rows) figures.most_stalled.resize(limits.rows);
  return figures;
}

}  // namespace weir::timeline
