#include "tools/timeline/analysis/counters.hpp"

#include <algorithm>
#include <initializer_list>
#include <map>
#include <tuple>

#include "tools/timeline/model/counters.hpp"

namespace weir::timeline {
namespace {

PoolCounts written(const TimelineRecord& record) {
  return {record.allocated, record.awaiting, record.cached};
}

/// Wraps modulo 2^64, so that taking too much shows in the result.
void move(std::uint64_t& from, std::uint64_t& to, std::uint64_t bytes) {
  from -= bytes;
  to += bytes;
}

}  // namespace

std::uint64_t PoolReplay::next_at() const {
  if (next_ >= pool_->records.size()) return UINT64_MAX;
  return std::max(at_, at_place(next_).begin);
}

bool PoolReplay::next() {
  if (next_ >= pool_->records.size()) return false;
  at_ = next_at();
  ++next_;
  disagreed_ = false;
  apply(record());
  return true;
}

const TimelineRecord* PoolReplay::ended() const {
  const std::uint32_t position = pool_->ends[next_ - 1];
  return position == PoolInfo::kNone ? nullptr : &at_place(position);
}

void PoolReplay::begin_anew(const TimelineRecord& record) {
  counts_ = written(record);
  requested_ = 0;
  budget_ = record.bytes;
  live_ = 0;
  counts_live_ = true;
  began_ = true;
  known_ = true;
}

void PoolReplay::note_gap() noexcept {
  ++gaps_;
  known_ = false;
}

/// Compares the blocks of kLive with what the pool had allocated when the recording began.
void PoolReplay::check_live(const TimelineRecord& record) {
  if (!counts_live_ || record.kind == TimelineKind::kLive) return;
  counts_live_ = false;
  if (live_ != counts_.allocated) note_gap();
}

void PoolReplay::apply(const TimelineRecord& record) {
  check_live(record);
  if (const TimelineRecord* block = ended())
    requested_ = less_or_zero(requested_, block->requested);
  switch (record.kind) {
    case TimelineKind::kPool:
      begin_anew(record);
      break;
    case TimelineKind::kLive:
      live_ = add_capped(live_, record.bytes);
      requested_ = add_capped(requested_, record.requested);
      return;
    case TimelineKind::kAllocate:
      requested_ = add_capped(requested_, record.requested);
      move(counts_.cached, counts_.allocated, record.bytes);
      break;
    case TimelineKind::kFree:
      if (ended() == nullptr && known_) ++strays_;
      move(counts_.allocated, record.detail == 1 ? counts_.awaiting : counts_.cached, record.bytes);
      break;
    case TimelineKind::kSettled:
      move(counts_.awaiting, counts_.cached, record.bytes);
      break;
    case TimelineKind::kReserve:
      counts_.cached += record.bytes;
      break;
    case TimelineKind::kRelease:
      counts_.cached -= record.bytes;
      break;
    case TimelineKind::kBudget:
      budget_ = record.bytes;
      break;
    case TimelineKind::kPoolEnd:
      counts_ = {};
      requested_ = 0;
      return;
    default:
      break;
  }
  compare(record);
}

void PoolReplay::compare(const TimelineRecord& record) {
  const PoolCounts own = written(record);
  const bool skips = record.sequence > sequence_ + 1 && record.kind != TimelineKind::kPool;
  sequence_ = std::max(sequence_, record.sequence);
  if (!began_) {  // the state before it is unknown
    began_ = true;
    note_gap();
  } else if (skips && lossy_) {
    note_gap();
  } else if (counts_ != own) {
    if (skips && !index_->process().complete) {
      note_gap();  // a truncated recording lacks each thread's last events
    } else {
      disagreed_ = true;
      known_ = false;
    }
  }
  counts_ = own;
}

AccountingCheck check_accounting(const Index& index) {
  AccountingCheck check;
  for (const PoolInfo& pool : index.pools()) {
    PoolReplay replay(index, pool);
    while (replay.next()) {
      const TimelineRecord& record = replay.record();
      if (record.kind == TimelineKind::kLive || record.kind == TimelineKind::kPoolEnd) continue;
      ++check.compared;
      if (!replay.disagreed()) continue;
      if (check.differ++ == 0) check.first_at = replay.at();
    }
    check.gaps += replay.gaps();
    check.strays += replay.strays();
  }
  return check;
}

namespace {

/// Updates the peaks of a pool.
void note_peaks(const PoolReplay& replay, PoolPeaks& peaks) {
  const PoolCounts& counts = replay.counts();
  peaks.peak_allocated = std::max(peaks.peak_allocated, counts.allocated);
  peaks.peak_reserved = std::max(peaks.peak_reserved, counts.reserved());
  const std::uint64_t held = add_capped(counts.allocated, counts.awaiting);
  if (held <= peaks.peak_held) return;
  peaks.peak_held = held;
  peaks.peak_at = replay.at();
  peaks.peak_batch = replay.record().kind == TimelineKind::kAllocate ? replay.record().batch : 0;
  peaks.peak_budget = replay.budget();
}

}  // namespace

PoolPeaks pool_peaks(const Index& index, const PoolInfo& pool) {
  PoolPeaks peaks{.source = pool.source, .name = describe(index, pool), .host = pool.host};
  PoolReplay replay(index, pool);
  while (replay.next()) note_peaks(replay, peaks);
  return peaks;
}

const PoolPeaks* main_pool(std::span<const PoolPeaks> peaks) noexcept {
  const PoolPeaks* best = nullptr;
  for (const PoolPeaks& one : peaks) {
    const bool better = best == nullptr || (best->host && !one.host) ||
                        (best->host == one.host && one.peak_held > best->peak_held);
    if (better) best = &one;
  }
  return best;
}

namespace {

/// Returns the indices of records of these kinds, in order.
std::vector<std::uint32_t> places_of(const Index& index,
                                     std::initializer_list<TimelineKind> kinds) {
  std::vector<std::uint32_t> places;
  for (const TimelineKind kind : kinds) {
    const auto of_kind = index.of(kind);
    places.insert(places.end(), of_kind.begin(), of_kind.end());
  }
  std::ranges::sort(places);
  return places;
}

std::vector<LibraryMemory> by_library(const Process& process, const DriverMemory& memory) {
  std::map<std::uint32_t, LibraryMemory> libraries;
  for (const auto& [address, block] : memory.blocks()) {
    if (is_of_host(block)) continue;
    LibraryMemory& library = libraries[block.name];
    library.bytes = add_capped(library.bytes, block.bytes);
    ++library.blocks;
  }
  std::vector<LibraryMemory> sorted;
  for (auto& [name, library] : libraries) {
    library.library = process.name(name);
    sorted.push_back(std::move(library));
  }
  std::ranges::stable_sort(sorted, [](const LibraryMemory& a, const LibraryMemory& b) {
    return std::tuple(b.bytes, a.library) < std::tuple(a.bytes, b.library);
  });
  return sorted;
}

}  // namespace

DriverMemoryFigures driver_memory(const Index& index) {
  DriverMemoryFigures figures;
  const auto places = places_of(index, {TimelineKind::kDriverAlloc, TimelineKind::kDriverFree});
  DriverMemory memory;
  std::size_t until_peak = 0;  // an index into `places`
  for (std::size_t i = 0; i < places.size(); ++i) {
    const TimelineRecord& record = index.record(places[i]);
    memory.add(record);
    figures.pinned_peak = std::max(figures.pinned_peak, memory.host());
    if (memory.device() <= figures.device_peak) continue;
    figures.device_peak = memory.device();
    figures.peak_at = record.begin;
    until_peak = i + 1;
  }
  DriverMemory then;
  for (std::size_t i = 0; i < until_peak; ++i) then.add(index.record(places[i]));
  figures.at_peak = by_library(index.process(), then);

  DriverPools pools;
  for (const std::uint32_t place : index.of(TimelineKind::kDriverPool)) {
    pools.add(index.record(place));
    figures.pools_used_peak = std::max(figures.pools_used_peak, pools.used());
    figures.pools_reserved_peak = std::max(figures.pools_reserved_peak, pools.reserved());
  }
  figures.told = !places.empty() || !index.of(TimelineKind::kDriverPool).empty();
  return figures;
}

}  // namespace weir::timeline
