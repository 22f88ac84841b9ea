#include "tools/timeline/chrome/foreign.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "allocator/base/error.hpp"

namespace weir::timeline::chrome {
namespace {

constexpr std::uint16_t kMostDevices = 1024;
constexpr std::size_t kMostThreads = 65536;

/// The capitalized names are those of PyTorch before 1.13.
std::optional<TimelineKind> kind_of_category(std::string_view category) {
  if (category == "kernel" || category == "Kernel") return TimelineKind::kKernel;
  if (category == "gpu_memcpy" || category == "Memcpy") return TimelineKind::kCopy;
  if (category == "gpu_memset" || category == "Memset") return TimelineKind::kSet;
  if (category == "cuda_runtime" || category == "Runtime" || category == "cuda_driver") {
    return TimelineKind::kCall;
  }
  if (category == "cuda_sync") return TimelineKind::kSync;
  return std::nullopt;
}

/// Returns when the event began and ended. The PyTorch profiler writes a time of 0 without a
/// duration for a time that it does not know, and a duration below 0 for a call without an end:
/// neither is a time.
std::optional<EventTimes> times_of(const Event& event) {
  const auto begin = event.number("ts");
  const auto length = event.number("dur");
  EventTimes times;
  if (!event.has("ts") || !begin || !length || (*begin == 0 && *length == 0) ||
      __builtin_add_overflow(*begin, *length, &times.end)) {
    return std::nullopt;
  }
  times.begin = *begin;
  return times;
}

TimelineCopy direction_of(std::string_view name) {
  const auto has = [name](std::string_view part) {
    return name.find(part) != std::string_view::npos;
  };
  if (has("HtoD")) return TimelineCopy::kToDevice;
  if (has("DtoH")) return TimelineCopy::kFromDevice;
  if (has("DtoD")) return TimelineCopy::kOnDevice;
  if (has("PtoP")) return TimelineCopy::kPeer;
  if (has("HtoH")) return TimelineCopy::kOnHost;
  return TimelineCopy::kOther;
}

/// The known state of a pool after some of its events.
struct PoolSoFar {
  std::uint64_t sequence = 0;
  std::uint64_t reserved = 0;
};

/// Returns the bytes allocated before this event.
std::uint64_t allocated_before(const TimelineRecord& record) {
  return record.kind == TimelineKind::kFree
             ? record.allocated + record.bytes
             : record.allocated - std::min(record.allocated, record.bytes);
}

/// Returns the pool's state before its first event. The file does not list the blocks allocated
/// then.
TimelineRecord pool_before(const TimelineRecord& first) {
  const std::uint64_t reserved = first.allocated + first.cached;
  const std::uint64_t allocated = allocated_before(first);
  return {.allocated = allocated,
          .cached = reserved - std::min(reserved, allocated),
          .source = first.source,
          .device = first.device,
          .kind = TimelineKind::kPool};
}

/// Returns the memory that came from the driver or went back before this event. The profiler
/// reports only the sum.
std::optional<TimelineRecord> change_before(const TimelineRecord& record, PoolSoFar& pool) {
  const std::uint64_t before = std::exchange(pool.reserved, record.allocated + record.cached);
  if (pool.reserved == before) return std::nullopt;
  const bool grown = pool.reserved > before;
  const std::uint64_t allocated = allocated_before(record);
  return TimelineRecord{.begin = record.begin,
                        .end = record.begin,
                        .bytes = grown ? pool.reserved - before : before - pool.reserved,
                        .allocated = allocated,
                        .cached = pool.reserved - std::min(pool.reserved, allocated),
                        .thread = record.thread,
                        .source = record.source,
                        .device = record.device,
                        .kind = grown ? TimelineKind::kReserve : TimelineKind::kRelease};
}

}  // namespace

void ForeignTaker::take(const Event& event) {
  const std::string_view phase = event.text("ph");
  const bool is_memory = phase == "i" && event.text("name") == "[memory]";
  bool taken = false;
  if (phase == "X" || is_memory) {
    const std::optional<EventTimes> times = times_of(event);
    if (!times) {
      ++untimed_;
      return;
    }
    taken = is_memory ? take_memory(event, *times) : take_slice(event, *times);
  } else if (phase == "M") {
    taken = take_thread(event);
  }
  if (!taken) ++others_;
}

std::uint32_t ForeignTaker::thread_of(const Event& event) {
  const auto pid = event.number("pid");
  const auto tid = event.number("tid");
  if (!pid || !tid) return 0;
  const auto found = threads_.find({*pid, *tid});
  if (found != threads_.end()) return found->second;
  if (threads_.size() == kMostThreads) return 0;
  const auto number = static_cast<std::uint32_t>(threads_.size() + 1);
  threads_.emplace(std::pair(*pid, *tid), number);
  return number;
}

bool ForeignTaker::take_slice(const Event& event, EventTimes times) {
  const auto kind = kind_of_category(event.text("cat"));
  if (!kind) return false;
  const auto device = event.number("args.device", kMostDevices);
  TimelineRecord record{.begin = times.begin, .end = times.end, .kind = *kind};
  record.id = event.number("args.correlation").value_or(0);
  if (*kind == TimelineKind::kCall || *kind == TimelineKind::kSync) {
    record.thread = thread_of(event);
  } else {
    if (!device) return false;
    record.device = static_cast<std::uint16_t>(*device + 1);
    record.bytes = event.number("args.bytes").value_or(0);
  }
  if (*kind != TimelineKind::kCall) record.stream = event.number("args.stream").value_or(0);
  if (*kind == TimelineKind::kCopy) {
    record.detail = static_cast<std::uint8_t>(direction_of(event.text("name")));
  }
  record.name = builder_.name(event.text("name"));
  builder_.add(record);
  any_ = true;
  return true;
}

bool ForeignTaker::take_memory(const Event& event, EventTimes times) {
  constexpr std::uint64_t kCuda = 1;  // c10::DeviceType::CUDA
  const auto device = event.number("args.Device Id", kMostDevices);
  if (!device || event.number("args.Device Type") != kCuda) return false;
  const std::uint64_t freed = event.below_zero("args.Bytes");
  const std::uint64_t bytes = freed != 0 ? freed : event.number("args.Bytes").value_or(0);
  if (bytes == 0) return false;
  const std::uint64_t allocated = event.number("args.Total Allocated").value_or(0);
  const std::uint64_t reserved = event.number("args.Total Reserved").value_or(0);
  builder_.add({.begin = times.begin,
                .end = times.begin,
                .id = event.number("args.Addr").value_or(0),
                .bytes = bytes,
                .requested = bytes,
                // Orders events at one time. Older profilers write whole microseconds.
                .sequence = ++memory_events_,
                .allocated = allocated,
                .cached = reserved - std::min(reserved, allocated),
                .thread = thread_of(event),
                .source = static_cast<std::uint16_t>(*device + 1),
                .device = static_cast<std::uint16_t>(*device + 1),
                .kind = freed != 0 ? TimelineKind::kFree : TimelineKind::kAllocate});
  any_ = true;
  return true;
}

bool ForeignTaker::take_thread(const Event& event) {
  if (event.text("name") != "thread_name" || !event.is_text("args.name")) return false;
  const std::uint32_t thread = thread_of(event);
  if (thread == 0) return false;
  builder_.add({.name = builder_.name(event.text("args.name")),
                .thread = thread,
                .kind = TimelineKind::kThread});
  return true;
}

void ForeignTaker::set_zero(const FileFacts& facts) {
  std::uint64_t zero = std::numeric_limits<std::uint64_t>::max();
  builder_.for_each([&zero](const TimelineRecord& record) {
    if (record.kind != TimelineKind::kThread) zero = std::min(zero, record.begin);
  });
  builder_.for_each([zero](TimelineRecord& record) {
    if (record.kind == TimelineKind::kThread) return;
    record.begin -= zero;
    record.end -= zero;
  });
  if (__builtin_add_overflow(facts.base_unix_ns, zero, &builder_.info.unix_ns)) {
    builder_.info.unix_ns = 0;
  }
}

void ForeignTaker::complete_pools(Process& process) {
  std::map<std::uint16_t, PoolSoFar> pools;
  std::vector<TimelineRecord> more;
  for (TimelineRecord& record : process.records) {
    if (record.source == 0) continue;
    const auto [place, first] = pools.try_emplace(record.source);
    PoolSoFar& pool = place->second;
    if (first) {
      process.names.push_back("GPU " + std::to_string(record.source - 1));
      more.push_back(pool_before(record));
      more.back().name = static_cast<std::uint32_t>(process.names.size() - 1);
      more.back().sequence = ++pool.sequence;
      pool.reserved = record.allocated + record.cached;
    }
    if (auto change = change_before(record, pool)) {
      change->sequence = ++pool.sequence;
      more.push_back(*change);
    }
    record.sequence = ++pool.sequence;
  }
  process.records.insert(process.records.end(), more.begin(), more.end());
  std::sort(process.records.begin(), process.records.end(), comes_before);
}

std::string ForeignTaker::left_out() const {
  std::string note;
  const auto add = [&note](std::uint64_t count, std::string_view why) {
    if (count == 0) return;
    note += note.empty() ? "events left out: " : ", ";
    note += std::to_string(count) + " " + std::string(why);
  };
  add(others_, "of other kinds");
  add(untimed_, "without a valid time");
  return note;
}

Timeline ForeignTaker::finish(const FileFacts& facts) {
  if (!any_) {
    throw UsageError(state_.path + ": not a timeline: of its " +
                     std::to_string(others_ + untimed_) +
                     " events none is of memory or of a device");
  }
  set_zero(facts);
  if (const std::string note = left_out(); !note.empty()) {
    builder_.add({.name = builder_.name(note), .kind = TimelineKind::kNote});
  }
  builder_.info.program = "another program's trace";
  builder_.complete = facts.whole;
  Timeline timeline;
  timeline.processes.push_back(builder_.finish());
  complete_pools(timeline.processes.front());
  return timeline;
}

}  // namespace weir::timeline::chrome
