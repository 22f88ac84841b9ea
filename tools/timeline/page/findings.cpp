#include "tools/timeline/page/findings.hpp"

#include <algorithm>
#include <span>
#include <utility>

namespace weir::timeline {
namespace {

constexpr std::size_t kMostGaps = 20000;
constexpr std::size_t kMostHolders = 12;
constexpr std::size_t kMostFailures = 20;

[[nodiscard]] PoolPeak peak_of(const Index& index, const PoolInfo& pool, std::uint64_t at) {
  PoolPeak peak{.name = describe(index, pool),
                .source = pool.source,
                .at = at,
                .fragmentation = fragmentation(index, pool, index.span(), 1)};
  const auto held_by = [&](GroupBy by) {
    return std::move(holders_at(index, pool, std::span(&at, 1), by, kMostHolders).front());
  };
  peak.by_label = held_by(GroupBy::kLabel);
  peak.by_kind = held_by(GroupBy::kKind);
  peak.by_site = held_by(GroupBy::kSite);
  return peak;
}

}  // namespace

Findings findings_of(const Process& process) {
  const Index index(process);
  Findings out;
  SummaryParts parts;
  parts.devices = idle_by_cause(index, {.most_gaps = kMostGaps});
  for (const PoolInfo& pool : index.pools()) {
    parts.pools.push_back(pool_series(index, pool, index.span(), 1));
    out.pools.push_back(peak_of(index, pool, parts.pools.back().peak_at));
  }
  out.summary = summarize(index, parts);
  out.devices = std::move(parts.devices);
  for (const DeviceIdle& device : out.devices) {
    out.device_names.push_back(device.name);
  }
  out.failures = failures(index, kMostFailures, kMostHolders);
  out.barriers = barriers(index);
  out.tasks = task_tables(index);
  for (const TaskTable& table : out.tasks) {
    out.task_names.push_back(table.name);
  }
  out.notes = notes(index);
  return out;
}

}  // namespace weir::timeline
