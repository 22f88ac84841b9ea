#include "tools/timeline/recorder/drain.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace weir::timeline {
namespace {

std::uint64_t monotonic_ns() noexcept {
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

/// Rounds down, so that the result never decreases along the line.
std::uint64_t between(const ClockPair& a, const ClockPair& b, std::uint64_t ticks) noexcept {
  const std::uint64_t part = ticks - a.ticks;
  const std::uint64_t rise = b.ns - a.ns;
  const std::uint64_t run = b.ticks - a.ticks;
  if ((part | rise) >> 32U == 0) return a.ns + part * rise / run;
  __extension__ using Wide = unsigned __int128;
  return a.ns + static_cast<std::uint64_t>(static_cast<Wide>(part) * rise / run);
}

}  // namespace

ClockPair read_clocks(const TickClock& clock) noexcept {
  // Another thread may run between the two readings, so the quickest of several attempts counts.
  constexpr int kAttempts = 8;
  ClockPair best;
  std::uint64_t best_gap = UINT64_MAX;
  for (int i = 0; i < kAttempts; ++i) {
    const std::uint64_t before = clock.now();
    const std::uint64_t ns = monotonic_ns();
    const std::uint64_t gap = clock.now() - before;
    if (gap >= best_gap) continue;
    best_gap = gap;
    best = {.ticks = before + gap / 2, .ns = ns};
  }
  return best;
}

ClockMap::ClockMap(ClockPair first, double ns_per_tick)
    : first_(first), first_rate_(ns_per_tick), pairs_{first} {}

void ClockMap::add(ClockPair pair) {
  const ClockPair& last = pairs_.back();
  if (pair.ticks <= last.ticks || pair.ns <= last.ns) return;
  if (pairs_.size() == kMostPairs) pairs_.erase(pairs_.begin(), pairs_.begin() + kMostPairs / 2);
  pairs_.push_back(pair);
}

std::uint64_t ClockMap::ns(std::uint64_t ticks) const noexcept {
  if (ticks >= pairs_.back().ticks) return pairs_.back().ns;
  if (ticks < pairs_.front().ticks) {
    const double before = static_cast<double>(pairs_.front().ticks - ticks) * ns_per_tick() + 0.5;
    const auto whole = static_cast<std::uint64_t>(before);
    return whole < pairs_.front().ns ? pairs_.front().ns - whole : 0;
  }
  auto next = pairs_.end() - 1;
  if (ticks < (next - 1)->ticks) {  // most ticks are on the last line
    next = std::ranges::upper_bound(pairs_, ticks, {}, &ClockPair::ticks);
  }
  return between(*(next - 1), *next, ticks);
}

double ClockMap::ns_per_tick() const noexcept {
  const ClockPair& last = pairs_.back();
  if (last.ticks == first_.ticks) return first_rate_;
  return static_cast<double>(last.ns - first_.ns) / static_cast<double>(last.ticks - first_.ticks);
}

namespace {

/// Chunks per call of the writer: 20 MB, so that the threads get them back soon.
constexpr std::size_t kChunksAtOnce = 256;

/// A program may create threads without end.
constexpr std::size_t kMostTracks = 4096;

bool is_before(const TimelineRecord& a, const TimelineRecord& b) noexcept {
  return a.begin != b.begin ? a.begin < b.begin : a.sequence < b.sequence;
}

std::uint64_t unix_ns() noexcept {
  using Clock = std::chrono::system_clock;
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch())
          .count());
}

}  // namespace

Drain::Drain(const TickClock& clock, ChunkStore& chunks, const Names& names, RecorderOutput output,
             RecentLimits recent)
    : clock_(clock),
      chunks_(chunks),
      names_(names),
      output_(std::move(output)),
      recent_limits_(recent),
      map_(read_clocks(clock), clock.ns_per_tick()) {}

void Drain::begin(ProcessInfo& info) {
  const ClockPair zero = read_clocks(clock_);
  map_ = ClockMap(zero, clock_.ns_per_tick());
  zero_ns_ = zero.ns;
  info.monotonic_ns = zero_ns_;
  info.unix_ns = unix_ns();
}

void Drain::write_head(const ProcessInfo& info) {
  output_.writer->begin(info);
  output_.writer->flush();
}

std::string_view Drain::failure() const noexcept {
  return output_.file == nullptr ? std::string_view() : std::string_view(output_.file->failure());
}

std::uint64_t Drain::ns_since_zero(std::uint64_t ticks) const noexcept {
  const std::uint64_t ns = map_.ns(ticks);
  return ns > zero_ns_ ? ns - zero_ns_ : 0;
}

void Drain::read(Chunk& chunk) {
  const std::uint32_t filled = chunk.filled.load(std::memory_order_acquire);
  batch_.insert(batch_.end(), chunk.records.begin() + chunk.drained,
                chunk.records.begin() + filled);
  chunk.drained = filled;
}

void Drain::convert(std::span<TimelineRecord> records) const noexcept {
  for (TimelineRecord& record : records) {
    const bool is_moment = record.end == record.begin;
    record.begin = ns_since_zero(record.begin);
    record.end = is_moment ? record.begin : std::max(record.begin, ns_since_zero(record.end));
  }
}

void Drain::round(MoreRecords more, const std::function<void()>& advance) {
  full_.clear();
  in_use_.clear();
  chunks_.collect(full_, in_use_);
  batch_ = std::move(more.in_ticks);
  std::size_t read_since = 0;
  for (Chunk* chunk : full_) {
    read(*chunk);
    chunks_.recycle(*chunk);
    if (++read_since % kChunksAtOnce != 0) continue;
    map_.add(read_clocks(clock_));
    convert(batch_);
    write_batch();
    advance();
  }
  for (Chunk* chunk : in_use_) read(*chunk);
  // After reading the last record, so that no record is later than the line's end.
  map_.add(read_clocks(clock_));
  convert(batch_);
  note_threads();
  for (TimelineRecord& record : more.monotonic) {
    record.thread = thread_of(record.thread);
    record.begin = record.begin > zero_ns_ ? record.begin - zero_ns_ : 0;
    record.end = std::max(record.begin, record.end > zero_ns_ ? record.end - zero_ns_ : 0);
    batch_.push_back(record);
  }
  write_batch();
  flush();
  advance();
}

void Drain::note_threads() {
  for (const TimelineRecord& record : batch_) {
    if (record.kind != TimelineKind::kThread || record.id == 0) continue;
    threads_.insert_or_assign(static_cast<std::uint32_t>(record.id), record.thread);
  }
}

std::uint32_t Drain::thread_of(std::uint32_t system_thread) {
  // A free range of numbers: the system's are below 2^22, and ours begin at 1.
  constexpr std::uint32_t kOthers = 1U << 24U;
  if (system_thread == 0) return 0;
  return threads_.try_emplace(system_thread, kOthers + system_thread).first->second;
}

void Drain::write_batch() {
  note_threads();
  std::ranges::stable_sort(batch_, is_before);
  keep_recent();
  unflushed_ += batch_.size();
  if (!is_abandoned_ && !batch_.empty()) output_.writer->write(batch_, names_);
  batch_.clear();
}

void Drain::flush() {
  if (!is_abandoned_) output_.writer->flush();
  is_abandoned_ = is_abandoned_ || !failure().empty();
  (is_abandoned_ ? unwritten_ : written_) += unflushed_;
  unflushed_ = 0;
}

void Drain::keep_recent() {
  if (recent_limits_.records == 0 || batch_.empty()) return;
  recent_.insert(recent_.end(), batch_.begin(), batch_.end());
  for (const TimelineRecord& record : batch_) {
    const bool is_track =
        record.kind == TimelineKind::kThread || record.kind == TimelineKind::kStream;
    if (!is_track || tracks_.size() >= kMostTracks) continue;
    const std::uint64_t owner =
        record.kind == TimelineKind::kThread ? UINT64_MAX : std::uint64_t{record.source};
    tracks_[{owner, record.kind == TimelineKind::kThread ? record.thread : record.stream}] = record;
  }
  const std::uint64_t last = batch_.back().begin;
  const std::uint64_t first = last > recent_limits_.ns ? last - recent_limits_.ns : 0;
  while (recent_.size() > recent_limits_.records || recent_.front().end < first) {
    recent_.pop_front();
  }
}

std::vector<TimelineRecord> Drain::recent() const {
  std::vector<TimelineRecord> records(recent_.begin(), recent_.end());
  std::ranges::stable_sort(records, is_before);
  return records;
}

std::vector<TimelineRecord> Drain::tracks() const {
  std::vector<TimelineRecord> records;
  for (const auto& [key, record] : tracks_) records.push_back(record);
  return records;
}

void Drain::finish(std::uint64_t lost, const std::function<void()>& advance) {
  if (is_abandoned_) return;
  output_.writer->finish(lost);
  output_.writer->flush();
  if (output_.file == nullptr || !failure().empty()) return;
  output_.file->complete(advance);
}

}  // namespace weir::timeline
