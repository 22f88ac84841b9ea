#include "tools/timeline/page/activity_rows.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <optional>
#include <unordered_map>
#include <utility>

namespace weir::timeline {
namespace {

struct RowKey {
  RowKind kind{};
  std::uint16_t device = 0;
  std::uint64_t number = 0;  // number of the stream or thread
  friend auto operator<=>(const RowKey&, const RowKey&) = default;
};

[[nodiscard]] Category of_stall(std::uint8_t detail) {
  switch (static_cast<TimelineStall>(detail)) {
    case TimelineStall::kBudget:
      return Category::kStallBudget;
    case TimelineStall::kRunAhead:
      return Category::kStallRunAhead;
    default:
      return Category::kStallTurn;
  }
}

[[nodiscard]] Category of_copy(std::uint8_t detail) {
  switch (static_cast<TimelineCopy>(detail)) {
    case TimelineCopy::kToDevice:
      return Category::kCopyIn;
    case TimelineCopy::kFromDevice:
      return Category::kCopyOut;
    default:
      return Category::kCopy;
  }
}

struct Placed {
  RowKey row;
  Category category{};
};

// Returns where a record is drawn; nothing if it is not a slice.
[[nodiscard]] std::optional<Placed> place(const TimelineRecord& record) {
  const RowKey stream{RowKind::kStream, 0, record.stream};
  const RowKey device{RowKind::kDevice, record.device, record.stream};
  const RowKey waits{RowKind::kWaits, 0, record.thread};
  switch (record.kind) {
    case TimelineKind::kExecute:
      return Placed{stream, Category::kCompute};
    case TimelineKind::kStreamWait:
      return Placed{stream, Category::kStreamWait};
    case TimelineKind::kKernel:
      return Placed{device, Category::kCompute};
    case TimelineKind::kCopy:
      return Placed{device, of_copy(record.detail)};
    case TimelineKind::kSet:
      return Placed{device, Category::kSet};
    case TimelineKind::kStall:
    case TimelineKind::kPace:
      return Placed{waits, of_stall(record.detail)};
    case TimelineKind::kPoolWait:
      return Placed{waits, Category::kPoolWait};
    case TimelineKind::kMemoryWait:
      return Placed{waits, Category::kMemoryWait};
    case TimelineKind::kBarrier:
      return Placed{waits, Category::kBarrier};
    case TimelineKind::kSync:
      return Placed{waits, Category::kSync};
    case TimelineKind::kSubmit:
      return Placed{{RowKind::kSubmits, 0, record.thread}, Category::kSubmit};
    case TimelineKind::kCall:
      return Placed{{RowKind::kCalls, 0, record.thread}, Category::kCall};
    case TimelineKind::kOverhead:
      return Placed{{RowKind::kOverhead, 0, 0}, Category::kOverhead};
    default:
      return std::nullopt;
  }
}

// The scheduler records the stream of an operation, and the stream's name tells its purpose.
[[nodiscard]] Category of_stream(std::string_view name) {
  if (name.starts_with("copy-in")) {
    return Category::kCopyIn;
  }
  return name.starts_with("copy-out") ? Category::kCopyOut : Category::kCompute;
}

// The process's names for its streams and threads.
struct RowNames {
  std::unordered_map<std::uint64_t, std::uint32_t> streams;
  std::unordered_map<std::uint32_t, std::uint32_t> threads;
};

[[nodiscard]] RowNames names_of(const Process& process) {
  RowNames out;
  for (const TimelineRecord& record : process.records) {
    if (record.kind == TimelineKind::kStream) {
      out.streams[record.stream] = record.name;
    } else if (record.kind == TimelineKind::kThread) {
      out.threads[record.thread] = record.name;
    }
  }
  return out;
}

[[nodiscard]] std::string thread_name(const Process& process, const RowNames& names,
                                      std::uint64_t thread) {
  const auto at = names.threads.find(static_cast<std::uint32_t>(thread));
  const std::string_view name = at == names.threads.end() ? "" : process.name(at->second);
  return name.empty() ? "thread " + std::to_string(thread) : std::string(name);
}

[[nodiscard]] std::string row_name(const Process& process, const RowNames& names,
                                   const RowKey& key) {
  switch (key.kind) {
    case RowKind::kStream: {
      const auto at = names.streams.find(key.number);
      const std::string_view name = at == names.streams.end() ? "" : process.name(at->second);
      return name.empty() ? "stream " + std::to_string(key.number) : std::string(name);
    }
    case RowKind::kDevice:
      return (key.device > 0 ? "GPU " + std::to_string(key.device - 1) : std::string("GPU")) +
             ", stream " + std::to_string(key.number);
    case RowKind::kWaits:
      return thread_name(process, names, key.number) + ": waits";
    case RowKind::kSubmits:
      return thread_name(process, names, key.number) + ": submits";
    case RowKind::kCalls:
      return thread_name(process, names, key.number) + ": driver calls";
    case RowKind::kOverhead:
    case RowKind::kIdle:
      break;
  }
  return "profiler's own work";
}

[[nodiscard]] Run run_of(const TimelineRecord& record, Category category) {
  Run run;
  run.begin = record.begin;
  run.end = std::max(record.begin, record.end);
  run.busy = run.end - run.begin;
  run.longest = run.busy;
  run.bytes = record.bytes;
  run.name = record.name;
  run.batch = record.batch;
  run.category = static_cast<std::uint32_t>(category);
  return run;
}

void keep_busiest(ActivityRows& rows, std::size_t most) {
  if (rows.rows.size() <= most) {
    return;
  }
  std::vector<std::size_t> order(rows.rows.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return rows.rows[a].busy > rows.rows[b].busy;
  });
  rows.left_out = order.size() - most;
  order.resize(most);
  std::sort(order.begin(), order.end());
  std::vector<ActivityRow> kept;
  kept.reserve(order.size());
  for (const std::size_t index : order) {
    kept.push_back(std::move(rows.rows[index]));
  }
  rows.rows = std::move(kept);
}

}  // namespace

ActivityRows activity_rows(const Process& process, Columns columns, std::size_t most) {
  struct Building {
    RunThinner thinner;
    std::uint64_t busy = 0;
  };
  const RowNames names = names_of(process);
  std::map<RowKey, Building> building;
  for (const TimelineRecord& record : process.records) {
    const std::optional<Placed> placed = place(record);
    if (placed.has_value()) {
      Building& row =
          building.try_emplace(placed->row, Building{RunThinner(columns)}).first->second;
      Run run = run_of(record, placed->category);
      if (record.kind == TimelineKind::kExecute) {
        const auto name = names.streams.find(record.stream);
        run.category = static_cast<std::uint32_t>(
            of_stream(name == names.streams.end() ? "" : process.name(name->second)));
      }
      row.busy += run.busy;
      row.thinner.add(run);
    }
  }
  ActivityRows out;
  for (auto& [key, row] : building) {
    out.rows.push_back({key.kind, row_name(process, names, key), row.busy, row.thinner.take()});
  }
  keep_busiest(out, most);
  return out;
}

Series batches_over_time(const Process& process, Columns columns) {
  // 1: open, 2: in flight.
  std::unordered_map<std::uint32_t, int> states;
  std::int64_t open = 0;
  std::int64_t flying = 0;
  std::int64_t youngest = 0;
  SeriesThinner thinner(6, columns);
  for (const TimelineRecord& record : process.records) {
    int next = 0;
    if (record.kind == TimelineKind::kAdmit) {
      next = 1;
      youngest = std::max<std::int64_t>(youngest, record.batch);
    } else if (record.kind == TimelineKind::kClose) {
      next = 2;
    } else if (record.kind != TimelineKind::kSettle) {
      continue;
    }
    const auto at = states.find(record.batch);
    const int before = at == states.end() ? 0 : at->second;
    open += (next == 1 ? 1 : 0) - (before == 1 ? 1 : 0);
    flying += (next == 2 ? 1 : 0) - (before == 2 ? 1 : 0);
    if (next == 0) {
      states.erase(record.batch);
    } else {
      states[record.batch] = next;
    }
    const std::array<std::int64_t, 6> row{static_cast<std::int64_t>(record.begin),
                                          open + flying,
                                          open + flying,
                                          open,
                                          flying,
                                          youngest};
    thinner.add(row);
  }
  return thinner.take();
}

}  // namespace weir::timeline
