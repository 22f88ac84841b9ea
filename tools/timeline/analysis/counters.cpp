#include "tools/timeline/analysis/counters.hpp"

#include <algorithm>

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
  disagreed_.reset();
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
      disagreed_ = counts_;
      known_ = false;
    }
  }
  counts_ = own;
}

AccountingCheck check_accounting(const Index& index, std::size_t most) {
  AccountingCheck check;
  for (const PoolInfo& pool : index.pools()) {
    PoolReplay replay(index, pool);
    while (replay.next()) {
      const TimelineRecord& record = replay.record();
      if (record.kind == TimelineKind::kLive || record.kind == TimelineKind::kPoolEnd) continue;
      ++check.compared;
      if (!replay.disagreed()) continue;
      ++check.differ;
      if (check.first.size() >= most) continue;
      check.first.push_back({.source = pool.source,
                             .sequence = record.sequence,
                             .at = replay.at(),
                             .rebuilt = *replay.disagreed(),
                             .written = written(record)});
    }
    check.gaps += replay.gaps();
    check.strays += replay.strays();
  }
  return check;
}

namespace {

/// Updates the peaks of a pool.
void note_peaks(const PoolReplay& replay, PoolSeries& series) {
  const PoolCounts& counts = replay.counts();
  series.peak_allocated = std::max(series.peak_allocated, counts.allocated);
  series.peak_reserved = std::max(series.peak_reserved, counts.reserved());
  const std::uint64_t held = add_capped(counts.allocated, counts.awaiting);
  if (held <= series.peak_held) return;
  series.peak_held = held;
  series.peak_at = replay.at();
  series.peak_batch = replay.record().kind == TimelineKind::kAllocate ? replay.record().batch : 0;
  series.peak_budget = replay.budget();
}

}  // namespace

PoolSeries pool_series(const Index& index, const PoolInfo& pool, Span span, std::uint32_t columns) {
  PoolSeries series{.source = pool.source, .name = describe(index, pool), .host = pool.host};
  Reducer requested(span, columns);
  Reducer allocated(span, columns);
  Reducer awaiting(span, columns);
  Reducer cached(span, columns);
  Reducer reserved(span, columns);
  Reducer budget(span, columns);
  PoolReplay replay(index, pool);
  std::optional<std::uint64_t> unknown_since;
  while (replay.next()) {
    const std::uint64_t at = replay.at();
    const PoolCounts& counts = replay.counts();
    requested.add({at, replay.requested()});
    allocated.add({at, counts.allocated});
    awaiting.add({at, counts.awaiting});
    cached.add({at, counts.cached});
    reserved.add({at, counts.reserved()});
    budget.add({at, replay.budget()});
    note_peaks(replay, series);
    if (!replay.known() && !unknown_since) unknown_since = at;
    if (replay.known() && unknown_since)
      series.unknown.push_back({*std::exchange(unknown_since, std::nullopt), at});
  }
  if (unknown_since) series.unknown.push_back({*unknown_since, span.end});
  series.requested = requested.finish();
  series.allocated = allocated.finish();
  series.awaiting = awaiting.finish();
  series.cached = cached.finish();
  series.reserved = reserved.finish();
  series.budget = budget.finish();
  return series;
}

const PoolSeries* main_pool(std::span<const PoolSeries> series) noexcept {
  const PoolSeries* best = nullptr;
  for (const PoolSeries& one : series) {
    const bool better = best == nullptr || (best->host && !one.host) ||
                        (best->host == one.host && one.peak_held > best->peak_held);
    if (better) best = &one;
  }
  return best;
}

}  // namespace weir::timeline
