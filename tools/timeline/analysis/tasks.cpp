#include "tools/timeline/analysis/tasks.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "tools/timeline/analysis/batches.hpp"

namespace weir::timeline {
namespace {

using Key = std::tuple<std::uint16_t, std::uint64_t>;

Key key_of(const TimelineRecord& record) {
  const bool ours = record.kind == TimelineKind::kSubmit || record.kind == TimelineKind::kExecute;
  return {ours ? record.source : std::uint16_t{0}, record.id};
}

std::vector<std::uint32_t> by_key(const Index& index, TimelineKind kind) {
  const auto places = index.of(kind);
  std::vector<std::uint32_t> sorted(places.begin(), places.end());
  const auto before = [&](std::uint32_t a, std::uint32_t b) {
    return key_of(index.record(a)) < key_of(index.record(b));
  };
  if (!std::is_sorted(sorted.begin(), sorted.end(), before))
    std::stable_sort(sorted.begin(), sorted.end(), before);
  return sorted;
}

}  // namespace

Submissions::Submissions(const Index& index)
    : index_(&index),
      submits_(by_key(index, TimelineKind::kSubmit)),
      calls_(by_key(index, TimelineKind::kCall)) {}

const TimelineRecord* Submissions::of(const TimelineRecord& work) const {
  if (work.id == 0) return nullptr;
  const auto& places = work.kind == TimelineKind::kExecute ? submits_ : calls_;
  const Key key = key_of(work);
  // The first entry after all that have the key and began no later.
  const auto behind =
      std::upper_bound(places.begin(), places.end(), work, [&](const auto& w, std::uint32_t place) {
        const TimelineRecord& one = index_->record(place);
        return key != key_of(one) ? key < key_of(one) : w.begin < one.begin;
      });
  if (behind != places.begin() && key_of(index_->record(*(behind - 1))) == key)
    return &index_->record(*(behind - 1));
  if (behind != places.end() && key_of(index_->record(*behind)) == key)
    return &index_->record(*behind);
  return nullptr;
}

namespace {

/// The table row to which a work belongs.
struct RowKey {
  TaskGroup group{};
  std::uint32_t name = 0;
  std::uint8_t detail = 0;  ///< direction of a copy; kind of a wait or an allocator event

  friend auto operator<=>(const RowKey&, const RowKey&) = default;
};

class Rows {
 public:
  TaskRow& of(const RowKey& key, std::string_view name) {
    const auto [place, fresh] = rows_.try_emplace(key);
    if (fresh) {
      place->second.group = key.group;
      place->second.name = name;
    }
    return place->second;
  }
  /// Shares are of `busy`.
  [[nodiscard]] std::vector<TaskRow> finish(std::uint64_t busy) {
    std::vector<TaskRow> rows;
    for (auto& [key, row] : rows_) {
      if (busy != 0) row.share = static_cast<double>(row.total) / static_cast<double>(busy);
      if (row.total != 0)
        row.bytes_per_second =
            static_cast<double>(row.bytes) * 1e9 / static_cast<double>(row.total);
      rows.push_back(std::move(row));
    }
    std::ranges::stable_sort(rows, [](const TaskRow& a, const TaskRow& b) {
      return std::tuple(a.group, b.total, a.name) < std::tuple(b.group, a.total, b.name);
    });
    return rows;
  }

 private:
  std::map<RowKey, TaskRow> rows_;
};

void count(TaskRow& row, Span span, std::uint64_t own, std::uint64_t bytes) {
  ++row.count;
  row.total = add_capped(row.total, own);
  row.longest = std::max(row.longest, span.length());
  row.bytes = add_capped(row.bytes, bytes);
}

RowKey key_of(const StreamInfo& stream, const TimelineRecord& work) {
  if (work.kind == TimelineKind::kSet) return {TaskGroup::kSet, 0, 0};
  if (const auto direction = copy_direction(stream, work))
    return {TaskGroup::kCopy, 0, static_cast<std::uint8_t>(*direction)};
  return {TaskGroup::kOperation, work.name, 0};
}

std::string_view name_of(const Process& process, const RowKey& key) {
  if (key.group == TaskGroup::kSet) return "set";
  if (key.group == TaskGroup::kCopy) return to_string(static_cast<TimelineCopy>(key.detail));
  const std::string_view name = process.name(key.name);
  return name.empty() ? "no name" : name;
}

TaskTable table_of(const Index& index, DeviceKey device) {
  TaskTable table{.device = device, .name = describe(index, device)};
  Rows rows;
  for (const StreamInfo& stream : index.streams()) {
    if (stream.device != device) continue;
    OwnTimes own(index);
    for (const std::uint32_t place : stream.records) {
      const TimelineRecord& work = index.record(place);
      const RowKey key = key_of(stream, work);
      TaskRow& row = rows.of(key, name_of(index.process(), key));
      if (key.group == TaskGroup::kCopy) row.direction = static_cast<TimelineCopy>(key.detail);
      const std::uint64_t time = own.add(span_of(work));
      count(row, span_of(work), time, work.bytes);
      table.busy += time;
      ++table.count;
    }
  }
  table.rows = rows.finish(table.busy);
  return table;
}

struct Named {
  TimelineKind kind;
  std::string_view name;
};
constexpr std::array<Named, 7> kAllocatorRows{{{TimelineKind::kAllocate, "allocate"},
                                               {TimelineKind::kFree, "free"},
                                               {TimelineKind::kReserve, "reserve"},
                                               {TimelineKind::kRelease, "release"},
                                               {TimelineKind::kMap, "map"},
                                               {TimelineKind::kDriverAlloc, "driver allocate"},
                                               {TimelineKind::kDriverFree, "driver free"}}};
constexpr std::array<Named, 6> kWaitRows{{{TimelineKind::kBarrier, "barrier"},
                                          {TimelineKind::kSync, "synchronize"},
                                          {TimelineKind::kStall, "stall"},
                                          {TimelineKind::kPoolWait, "wait for memory"},
                                          {TimelineKind::kMemoryWait, "wait for other batches"},
                                          {TimelineKind::kPace, "paced launch"}}};

std::string wait_name(const Process& process, const Named& wait, const TimelineRecord& record) {
  std::string name(wait.name);
  if (wait.kind == TimelineKind::kStall)
    return name + ": " + std::string(to_string(static_cast<TimelineStall>(record.detail)));
  const bool called = wait.kind == TimelineKind::kBarrier || wait.kind == TimelineKind::kSync;
  if (called && record.name != 0) name += ": " + std::string(process.name(record.name));
  return name;
}

/// Returns the table of what belongs to no device.
TaskTable table_of_host(const Index& index) {
  TaskTable table;
  Rows rows;
  for (const Named& kind : kAllocatorRows) {
    for (const std::uint32_t place : index.of(kind.kind)) {
      const RowKey key{TaskGroup::kAllocator, 0, static_cast<std::uint8_t>(kind.kind)};
      count(rows.of(key, kind.name), {}, 0, index.record(place).bytes);
    }
  }
  for (const Named& kind : kWaitRows) {
    for (const std::uint32_t place : index.of(kind.kind)) {
      const TimelineRecord& wait = index.record(place);
      const std::uint32_t named =
          kind.kind == TimelineKind::kStall ? std::uint32_t{wait.detail} : wait.name;
      const bool by_name =
          kind.name == "barrier" || kind.name == "synchronize" || kind.kind == TimelineKind::kStall;
      const RowKey key{TaskGroup::kWait, by_name ? named : 0, static_cast<std::uint8_t>(kind.kind)};
      const Span span = span_of(wait);
      count(rows.of(key, wait_name(index.process(), kind, wait)), span, span.length(), 0);
    }
  }
  table.rows = rows.finish(0);
  return table;
}

}  // namespace

std::optional<TimelineCopy> copy_direction(const StreamInfo& stream,
                                           const TimelineRecord& work) noexcept {
  if (work.kind == TimelineKind::kCopy) {
    const bool known = work.detail <= static_cast<std::uint8_t>(TimelineCopy::kOnHost);
    return known ? static_cast<TimelineCopy>(work.detail) : TimelineCopy::kOther;
  }
  // Of the scheduler's streams the copying ones do nothing else.
  if (work.kind != TimelineKind::kExecute) return std::nullopt;
  if (stream.name.find("copy-in") != std::string::npos) return TimelineCopy::kToDevice;
  if (stream.name.find("copy-out") != std::string::npos) return TimelineCopy::kFromDevice;
  return std::nullopt;
}

std::vector<TaskTable> task_tables(const Index& index) {
  std::vector<TaskTable> tables;
  for (const StreamInfo& stream : index.streams()) {  // by device
    if (tables.empty() || tables.back().device != stream.device)
      tables.push_back(table_of(index, stream.device));
  }
  tables.push_back(table_of_host(index));
  return tables;
}

namespace {

using Spans = std::vector<Span>;

/// Returns the same times as disjoint spans in order.
Spans disjoint(Spans spans) {
  std::ranges::sort(spans, {}, &Span::begin);
  Spans joined;
  for (const Span& span : spans) add_in_order(joined, span);
  return joined;
}

/// Returns the time that is in both. Each is disjoint and in order.
std::uint64_t in_both(const Spans& a, const Spans& b) {
  std::uint64_t time = 0;
  for (auto x = a.begin(), y = b.begin(); x != a.end() && y != b.end();) {
    time += common(*x, *y).length();
    if (x->end < y->end) {
      ++x;
    } else {
      ++y;
    }
  }
  return time;
}

}  // namespace

HiddenCopies hidden_copies(const Index& index, DeviceKey device, Span during) {
  Spans copies;
  Spans computations;
  for (const StreamInfo& stream : index.streams()) {
    if (stream.device != device) continue;
    for (const std::uint32_t place : stream.records) {
      const TimelineRecord& work = index.record(place);
      const Span span = common(span_of(work), during);
      const auto direction = copy_direction(stream, work);
      if (direction == TimelineCopy::kToDevice) copies.push_back(span);
      if (!direction && work.kind != TimelineKind::kSet) computations.push_back(span);
    }
  }
  copies = disjoint(std::move(copies));
  return {in_both(copies, copies), in_both(copies, disjoint(std::move(computations)))};
}

}  // namespace weir::timeline
