#include "tools/timeline/page/picture.hpp"

#include <algorithm>
#include <iterator>
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
                .fragmentation = fragmentation(index, pool)};
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
    parts.pools.push_back(pool_peaks(index, pool));
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

namespace {

// The most that a JavaScript number holds exactly.
constexpr std::uint64_t kLatest = std::uint64_t{1} << 52U;

[[nodiscard]] std::uint64_t duration_of(const Process& process) {
  std::uint64_t end = 1;
  for (const TimelineRecord& record : process.records) {
    end = std::max({end, record.begin, record.end});
  }
  return std::min(end, kLatest);
}

[[nodiscard]] std::vector<std::uint64_t> failures_of(const Process& process,
                                                     const PoolRecords& pool) {
  std::vector<std::uint64_t> times;
  for (const std::uint32_t index : pool.order) {
    if (process.records[index].kind == TimelineKind::kFailure && times.size() < 64) {
      times.push_back(process.records[index].begin);
    }
  }
  return times;
}

// Adds each device's idle times and their causes after its streams.
void add_idle_rows(ProcessPicture& picture, Columns columns) {
  std::vector<ActivityRow>& rows = picture.activity.rows;
  const auto behind_streams = std::find_if(
      rows.begin(), rows.end(), [](const ActivityRow& row) { return row.kind > RowKind::kIdle; });
  std::vector<ActivityRow> idle;
  for (std::size_t i = 0; i < picture.findings.devices.size(); ++i) {
    const DeviceIdle& device = picture.findings.devices[i];
    RunThinner thinner(columns);
    for (const Gap& gap : device.gaps) {
      Run run;
      run.begin = gap.span.begin;
      run.end = gap.span.end;
      run.busy = gap.span.length();
      run.longest = run.busy;
      run.name = gap.site;
      run.category =
          static_cast<std::uint32_t>(Category::kIdle) + static_cast<std::uint32_t>(gap.cause);
      thinner.add(run);
    }
    idle.push_back({RowKind::kIdle, picture.findings.device_names[i] + ": idle, by cause",
                    device.idle, thinner.take()});
  }
  rows.insert(behind_streams, std::make_move_iterator(idle.begin()),
              std::make_move_iterator(idle.end()));
}

}  // namespace

ProcessPicture draw(const Process& process, const Detail& detail) {
  ProcessPicture picture;
  picture.process = &process;
  picture.duration = duration_of(process);
  picture.detail = detail;
  const BatchKinds kinds = batch_kinds(process);
  for (const PoolRecords& pool : pools_of(process)) {
    picture.pools.push_back(picture_of(process, pool, kinds, picture.duration, detail.memory,
                                       failures_of(process, pool)));
  }
  const Columns columns{picture.duration, detail.row_columns};
  picture.findings = findings_of(process);
  picture.activity = activity_rows(process, columns, detail.rows);
  add_idle_rows(picture, columns);
  picture.batches = batches_over_time(process, columns);
  return picture;
}

void coarsen(ProcessPicture& picture) {
  Detail& detail = picture.detail;
  detail.memory.columns = std::max<std::uint32_t>(1, detail.memory.columns / 2);
  detail.row_columns = std::max<std::uint32_t>(1, detail.row_columns / 2);
  const Columns columns{picture.duration, detail.row_columns};
  for (MemoryPicture& pool : picture.pools) {
    pool.series = thin(pool.series, {picture.duration, detail.memory.columns});
    halve_moments(pool, detail.memory.largest);
  }
  for (ActivityRow& row : picture.activity.rows) {
    row.runs = thin(row.runs, columns);
  }
  picture.batches = thin(picture.batches, columns);
}

}  // namespace weir::timeline
