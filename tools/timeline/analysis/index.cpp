#include "tools/timeline/analysis/index.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>

namespace weir::timeline {
namespace {

bool is_known(const TimelineRecord& record) {
  return static_cast<std::size_t>(record.kind) < kTimelineKinds;
}
bool is_of_pool(TimelineKind kind) { return kind <= TimelineKind::kPoolEnd; }
bool is_work(TimelineKind kind) {
  return kind == TimelineKind::kExecute || kind == TimelineKind::kKernel ||
         kind == TimelineKind::kCopy || kind == TimelineKind::kSet;
}

/// Orders records with one sequence number: kPool and its kLive records describe the state after
/// the event of that number.
int rank_of(TimelineKind kind) {
  if (kind == TimelineKind::kPool) return 1;
  return kind == TimelineKind::kLive ? 2 : 0;
}

void sort_by_begin(const Process& process, std::span<std::uint32_t> places) {
  const auto earlier = [&](std::uint32_t a, std::uint32_t b) {
    return process.records[a].begin < process.records[b].begin;
  };
  if (!std::is_sorted(places.begin(), places.end(), earlier))
    std::stable_sort(places.begin(), places.end(), earlier);
}

/// Sorts `places`, which are by time. A record without a sequence number follows its predecessor.
void sort_by_sequence(const Process& process, std::vector<std::uint32_t>& places) {
  struct Key {
    std::uint64_t sequence = 0;
    int rank = 0;
    std::uint32_t place = 0;
  };
  std::vector<Key> keys;
  keys.reserve(places.size());
  std::uint64_t last = 0;
  for (const std::uint32_t place : places) {
    const TimelineRecord& record = process.records[place];
    if (record.sequence != 0) last = record.sequence;
    keys.push_back({last, rank_of(record.kind), place});
  }
  const auto before = [](const Key& a, const Key& b) {
    return a.sequence != b.sequence ? a.sequence < b.sequence : a.rank < b.rank;
  };
  if (std::is_sorted(keys.begin(), keys.end(), before)) return;
  std::stable_sort(keys.begin(), keys.end(), before);
  std::transform(keys.begin(), keys.end(), places.begin(),
                 [](const Key& key) { return key.place; });
}

/// Matches each free with its allocation, by address.
void match(const Process& process, PoolInfo& pool) {
  std::unordered_map<std::uint64_t, std::uint32_t> live;
  pool.ends.assign(pool.records.size(), PoolInfo::kNone);
  for (std::uint32_t position = 0; position < pool.records.size(); ++position) {
    const TimelineRecord& record = process.records[pool.records[position]];
    if (record.kind == TimelineKind::kPool || record.kind == TimelineKind::kPoolEnd) {
      live.clear();
    } else if (record.kind == TimelineKind::kAllocate || record.kind == TimelineKind::kLive) {
      const auto [place, fresh] = live.try_emplace(record.id, position);
      if (!fresh) pool.ends[position] = std::exchange(place->second, position);
    } else if (record.kind == TimelineKind::kFree) {
      const auto found = live.find(record.id);
      if (found == live.end()) continue;
      pool.ends[position] = found->second;
      live.erase(found);
    }
  }
}

}  // namespace

DeviceKey device_of(const TimelineRecord& record) noexcept {
  return {record.device, record.device == 0 ? record.source : std::uint16_t{0}};
}

Index::Index(const Process& process) : process_(&process) {
  sort_by_kind();
  find_windows();
  find_pools();
  find_streams();
  find_batches();
  std::uint64_t lost = 0;
  for (const std::uint32_t place : of(TimelineKind::kLost))
    lost = add_capped(lost, record(place).bytes);
  lost_ = std::max(process.lost, lost);
}

std::span<const std::uint32_t> Index::of(TimelineKind kind) const {
  const auto number = static_cast<std::size_t>(kind);
  if (number >= kTimelineKinds) return {};
  return std::span(places_).subspan(first_.at(number), first_.at(number + 1) - first_.at(number));
}

void Index::sort_by_kind() {
  std::array<std::uint32_t, kTimelineKinds + 1> counts{};
  bool any = false;
  for (const TimelineRecord& record : process_->records) {
    if (!is_known(record)) {
      ++unknown_;
      continue;
    }
    ++counts.at(static_cast<std::size_t>(record.kind) + 1);
    const Span span = span_of(record);
    span_ = any ? Span{std::min(span_.begin, span.begin), std::max(span_.end, span.end)} : span;
    any = true;
  }
  for (std::size_t kind = 0; kind < kTimelineKinds; ++kind)
    first_.at(kind + 1) = first_.at(kind) + counts.at(kind + 1);
  places_.resize(first_.back());
  auto next = first_;
  for (std::uint32_t place = 0; place < process_->records.size(); ++place) {
    if (!is_known(record(place))) continue;
    places_[next.at(static_cast<std::size_t>(record(place).kind))++] = place;
  }
  for (std::size_t kind = 0; kind < kTimelineKinds; ++kind) {
    sort_by_begin(*process_, std::span(places_).subspan(first_.at(kind),
                                                        first_.at(kind + 1) - first_.at(kind)));
  }
}

void Index::find_windows() {
  std::vector<std::pair<std::uint64_t, bool>> turns;  // true: a begin
  for (const std::uint32_t place : of(TimelineKind::kStart))
    turns.emplace_back(record(place).begin, true);
  for (const std::uint32_t place : of(TimelineKind::kStop))
    turns.emplace_back(record(place).begin, false);
  std::ranges::sort(turns);
  std::uint64_t since = span_.begin;
  bool records = turns.empty() || !turns.front().second;
  for (const auto& [at, begins] : turns) {
    if (!begins && records && at > since) windows_.push_back({since, at});
    if (begins && !records) since = at;
    records = begins;
  }
  if (records && span_.end > since) windows_.push_back({since, span_.end});
  for (Span& window : windows_) window = common(window, {0, kHorizon});
  std::erase_if(windows_, [](const Span& window) { return window.length() == 0; });
}

std::span<const Span> Index::windows_in(Span span) const {
  if (span.length() == 0) return {};
  const auto first = std::ranges::upper_bound(windows_, span.begin, {}, &Span::end);
  const auto behind =
      std::lower_bound(first, windows_.end(), span.end,
                       [](const Span& window, std::uint64_t end) { return window.begin < end; });
  return {first, behind};
}

std::uint64_t Index::recorded(Span span) const {
  std::uint64_t sum = 0;
  for (const Span& window : windows_in(span)) sum += common(window, span).length();
  return sum;
}

void Index::find_pools() {
  std::map<std::uint16_t, PoolInfo> pools;
  PoolInfo* last = nullptr;
  for (std::uint32_t place = 0; place < process_->records.size(); ++place) {
    const TimelineRecord& one = record(place);
    if (!is_known(one) || !is_of_pool(one.kind)) continue;
    if (last == nullptr || last->source != one.source) {
      last = &pools[one.source];
      last->source = one.source;
    }
    last->records.push_back(place);
  }
  for (auto& [source, pool] : pools) {
    sort_by_begin(*process_, pool.records);
    sort_by_sequence(*process_, pool.records);
    match(*process_, pool);
    for (const std::uint32_t place : pool.records) {
      const TimelineRecord& one = record(place);
      if (one.kind == TimelineKind::kPool) {
        pool.name = one.name;
        pool.host = one.detail == 1;
      }
      if (one.kind == TimelineKind::kPool || one.kind == TimelineKind::kBudget)
        pool.budget = one.bytes;
    }
    pools_.push_back(std::move(pool));
  }
}

void Index::find_streams() {
  std::map<std::pair<DeviceKey, std::uint64_t>, StreamInfo> streams;
  StreamInfo* last = nullptr;
  for (std::uint32_t place = 0; place < process_->records.size(); ++place) {
    const TimelineRecord& one = record(place);
    if (!is_known(one) || !is_work(one.kind)) continue;
    if (last == nullptr || last->device != device_of(one) || last->stream != one.stream) {
      last = &streams[{device_of(one), one.stream}];
      last->device = device_of(one);
      last->stream = one.stream;
    }
    last->records.push_back(place);
  }
  for (const std::uint32_t place : of(TimelineKind::kStream)) {
    const TimelineRecord& one = record(place);
    const auto found = streams.find({device_of(one), one.stream});
    if (found != streams.end()) found->second.name = process_->name(one.name);
  }
  for (auto& [key, stream] : streams) {
    sort_by_begin(*process_, stream.records);
    if (stream.name.empty()) stream.name = "stream " + std::to_string(stream.stream);
    streams_.push_back(std::move(stream));
  }
}

void Index::find_batches() {
  for (const TimelineKind kind :
       {TimelineKind::kAdmit, TimelineKind::kClose, TimelineKind::kSettle}) {
    for (const std::uint32_t place : of(kind)) {
      const TimelineRecord& one = record(place);
      if (one.batch != 0 && one.name != 0) kinds_.emplace_back(one.batch, one.name);
    }
  }
  std::ranges::stable_sort(kinds_, {}, &std::pair<std::uint32_t, std::uint32_t>::first);
  // Not std::ranges::unique: clang 14 cannot parse its result.
  const auto same = std::unique(kinds_.begin(), kinds_.end(),
                                [](const auto& a, const auto& b) { return a.first == b.first; });
  kinds_.erase(same, kinds_.end());
}

std::uint32_t Index::kind_of_batch(std::uint32_t batch) const {
  const auto found =
      std::ranges::lower_bound(kinds_, batch, {}, &std::pair<std::uint32_t, std::uint32_t>::first);
  return found != kinds_.end() && found->first == batch ? found->second : 0;
}

namespace {

std::string describe_gpu(DeviceKey device) { return "GPU " + std::to_string(device.device - 1); }

}  // namespace

std::string describe(const Index& index, DeviceKey device) {
  if (device.device != 0) return describe_gpu(device);
  std::size_t before = 0;
  std::size_t all = 0;
  std::optional<DeviceKey> last;
  for (const StreamInfo& stream : index.streams()) {  // by device
    if (stream.device.device != 0 || last == stream.device) continue;
    last = stream.device;
    ++all;
    if (*last < device) ++before;
  }
  return all < 2 ? "device" : "device " + std::to_string(before + 1);
}

std::string describe(const StreamInfo& stream) {
  return stream.device.device == 0 ? stream.name
                                   : stream.name + " of " + describe_gpu(stream.device);
}

std::string describe(const Index& index, const PoolInfo& pool) {
  const std::string_view name = index.process().name(pool.name);
  return name.empty() ? "pool " + std::to_string(pool.source) : std::string(name);
}

}  // namespace weir::timeline
