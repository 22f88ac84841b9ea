// Reads our own allocation log (docs/allocation-log.md).

#include <algorithm>
#include <span>
#include <utility>

#include "allocator/base/error.hpp"
#include "allocator/log/allocation_log_reader.hpp"
#include "tools/program/table.hpp"
#include "tools/replay/read/readers.hpp"

namespace weir::replay {
namespace {

/// Reads one pool's events, in their order.
class PoolReader {
 public:
  explicit PoolReader(std::string name) : builder_(std::move(name)) {}

  void take(const AllocationRecord& record) {
    switch (record.event) {
      case AllocationEvent::kAllocate:
        return live_.allocate(record.address, {record.bytes}, record.stream);
      case AllocationEvent::kFree:
        return live_.free(record.address, Bytes{record.bytes}, record.stream);
      case AllocationEvent::kUse:
        return live_.use(record.address, record.stream);
      case AllocationEvent::kFailure:
        ++failures_;
        return;
      case AllocationEvent::kPool:
      case AllocationEvent::kGrow:
      case AllocationEvent::kRelease:
        return;  // the pool's own actions are not requests
    }
  }

  [[nodiscard]] Trace finish(std::string cut) {
    Trace trace = builder_.finish();
    trace.cut = std::move(cut);
    if (failures_ != 0) {
      trace.notes.push_back(format_count(failures_, "request") +
                            " failed in the recording: skipped");
    }
    return trace;
  }

 private:
  TraceBuilder builder_;
  LiveAddresses live_{builder_};
  std::uint64_t failures_ = 0;
};

std::string where(const AllocationRecord& record) {
  return "event " + std::to_string(record.sequence) + " of pool " + std::to_string(record.pool);
}

/// Returns the trace of one pool's records.
Trace read_pool(const std::string& name, std::span<const AllocationRecord> records,
                const AllocationLogContents& log) {
  PoolReader reader(name);
  std::string cut;
  // Records can be missing: events are lost, and a thread that is stopped between an event and its
  // record leaves that record out. Later records may not fit the earlier ones then.
  const bool may_have_holes = !log.complete || log.lost != 0;
  if (!log.complete) cut = "the log has no end: its process crashed or is still running";
  if (log.lost != 0)
    cut += (cut.empty() ? "" : "; ") + std::to_string(log.lost) + " events were lost";
  for (const AllocationRecord& record : records) {
    try {
      reader.take(record);
    } catch (const Malformed& what) {
      if (!may_have_holes) throw UsageError(name + ": " + where(record) + ": " + what.what());
      cut += "; it is replayed up to " + where(record) + " (" + what.what() + ")";
      break;
    }
  }
  return reader.finish(std::move(cut));
}

}  // namespace

std::vector<Trace> read_log_traces(const Source& source) {
  const AllocationLogContents log = parse_allocation_log(source.name, source.bytes);
  std::vector<Trace> traces;
  for (auto begin = log.records.begin(); begin != log.records.end();) {
    const auto end = std::ranges::find_if(
        begin, log.records.end(),
        [pool = begin->pool](const AllocationRecord& record) { return record.pool != pool; });
    const std::string name = source.name + ", pool " + std::to_string(begin->pool);
    Trace trace = read_pool(name, {begin, end}, log);
    if (trace.cut.empty()) trace.cut = source.cut;
    if (!trace.operations.empty()) traces.push_back(std::move(trace));
    begin = end;
  }
  if (traces.size() == 1) traces.front().name = source.name;
  if (traces.empty()) throw UsageError(source.name + ": the log has no allocations");
  return traces;
}

}  // namespace weir::replay
