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
class RowNames {
 public:
  explicit RowNames(const Process& process) {
    for (const TimelineRecord& record : process.records) {
      if (record.kind == TimelineKind::kStream) streams_[record.stream] = process.name(record.name);
      if (record.kind == TimelineKind::kThread) threads_[record.thread] = process.name(record.name);
    }
  }
  [[nodiscard]] std::string_view stream(std::uint64_t number) const {
    return named(streams_, number);
  }
  [[nodiscard]] std::string of(const RowKey& key) const {
    const std::string number = std::to_string(key.number);
    const auto or_else = [&number](std::string_view name, const char* what) {
      return name.empty() ? what + (" " + number) : std::string(name);
    };
    const auto thread = [&](const char* does) {
      return or_else(named(threads_, key.number), "thread") + does;
    };
    switch (key.kind) {
      case RowKind::kStream:
        return or_else(stream(key.number), "stream");
      case RowKind::kDevice:
        return (key.device > 0 ? "GPU " + std::to_string(key.device - 1) : std::string("GPU")) +
               ", stream " + number;
      case RowKind::kWaits:
        return thread(": waits");
      case RowKind::kSubmits:
        return thread(": submits");
      case RowKind::kCalls:
        return thread(": driver calls");
      case RowKind::kOverhead:
      case RowKind::kIdle:
        break;
    }
    return "profiler's own work";
  }

 private:
  using Texts = std::unordered_map<std::uint64_t, std::string_view>;
  [[nodiscard]] static std::string_view named(const Texts& texts, std::uint64_t number) {
    const auto at = texts.find(number);
    return at == texts.end() ? std::string_view() : at->second;
  }
  Texts streams_, threads_;
};

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
  const RowNames names(process);
  std::map<RowKey, std::vector<Run>> rows;
  for (const TimelineRecord& record : process.records) {
    const std::optional<Placed> placed = place(record);
    if (!placed) continue;
    const Category category = record.kind == TimelineKind::kExecute
                                  ? of_stream(names.stream(record.stream))
                                  : placed->category;
    add_to_row(rows[placed->row], run_of(record, category), columns);
  }
  ActivityRows out;
  for (auto& [key, runs] : rows) {
    std::uint64_t busy = 0;
    for (const Run& run : runs) busy += run.busy;
    out.rows.push_back({key.kind, names.of(key), busy, std::move(runs)});
  }
  keep_busiest(out, most);
  return out;
}

Series batches_over_time(const Process& process, Columns columns) {
  enum class State : std::uint8_t { kNone, kOpen, kFlying };
  std::unordered_map<std::uint32_t, State> states;
  std::int64_t open = 0;
  std::int64_t flying = 0;
  std::int64_t youngest = 0;
  SeriesThinner thinner(6, columns);
  for (const TimelineRecord& record : process.records) {
    State next = State::kNone;
    if (record.kind == TimelineKind::kAdmit) {
      next = State::kOpen;
      youngest = std::max<std::int64_t>(youngest, record.batch);
    } else if (record.kind == TimelineKind::kClose) {
      next = State::kFlying;
    } else if (record.kind != TimelineKind::kSettle) {
      continue;
    }
    const State before = std::exchange(states[record.batch], next);
    if (next == State::kNone) states.erase(record.batch);
    open += (next == State::kOpen ? 1 : 0) - (before == State::kOpen ? 1 : 0);
    flying += (next == State::kFlying ? 1 : 0) - (before == State::kFlying ? 1 : 0);
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
