#include "tools/timeline/page/picture.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace weir::timeline {
namespace {

constexpr FigureLimits kLimits{.rows = 12, .failures = 20, .gaps = 20000, .page = true};

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
  for (const DeviceIdle& device : picture.figures.devices) {
    std::vector<Run> runs;
    for (const Gap& gap : device.gaps) {
      Run run;
      run.begin = gap.span.begin;
      run.end = gap.span.end;
      run.busy = gap.span.length();
      run.longest = run.busy;
      run.name = gap.site;
      run.category =
          static_cast<std::uint32_t>(Category::kIdle) + static_cast<std::uint32_t>(gap.cause);
      add_to_row(runs, run, columns);
    }
    idle.push_back(
        {RowKind::kIdle, device.name + ": idle, by cause", device.idle, std::move(runs)});
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
  picture.figures = report_figures(Index(process), kLimits);
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
