#include "tools/timeline/snapshot/history.hpp"

#include <algorithm>
#include <iterator>

namespace weir::timeline {
namespace {

/// The viewer computes with doubles.
constexpr std::uint64_t kMost = 1ULL << 62U;

/// Returns the first of `all` with a byte in [begin, end), or the end.
Stretches::const_iterator overlapping(const Stretches& all, std::uint64_t begin,
                                      std::uint64_t end) {
  auto at = all.upper_bound(begin);
  if (at != all.begin()) {
    const auto before = std::prev(at);
    if (before->first + before->second.bytes > begin) return before;
  }
  return at != all.end() && at->first < end ? at : all.end();
}

/// Adds [begin, end) to stretches, and joins adjacent ones.
void cover(Stretches& all, std::uint64_t begin, std::uint64_t end, const TimelineRecord& record) {
  auto at = all.upper_bound(begin);
  if (at != all.begin() && std::prev(at)->first + std::prev(at)->second.bytes >= begin) --at;
  while (at != all.end() && at->first <= end) {
    begin = std::min(begin, at->first);
    end = std::max(end, at->first + at->second.bytes);
    at = all.erase(at);
  }
  all[begin] = {.bytes = end - begin, .requested = 0, .record = record};
}

/// Replays the records of one pool.
class Follower {
 public:
  void follow(const TimelineRecord& record) {
    if (record.id >= kMost || record.bytes >= kMost) return;
    switch (record.kind) {
      case TimelineKind::kPool:
      case TimelineKind::kBudget:
        budget_ = record.bytes;
        break;
      case TimelineKind::kLive:
      case TimelineKind::kAllocate:
        allocate(record);
        break;
      case TimelineKind::kFree:
        free(record);
        break;
      case TimelineKind::kReserve:
        reserve(record);
        break;
      case TimelineKind::kRelease:
        release(record);
        break;
      case TimelineKind::kMap:
        knows_segments_ = false;
        break;
      case TimelineKind::kFailure: {
        const std::uint64_t reserved = record.allocated + record.awaiting + record.cached;
        add(HistoryEntry::Action::kOutOfMemory, 0, record.bytes, record);
        history_.entries.back().device_free = budget_ - std::min(budget_, reserved);
        break;
      }
      default:
        break;
    }
  }

  History finish() {
    if (knows_segments_) {
      // The viewer needs a segment around each block at all times.
      history_.segments = std::move(segments_);
      return std::move(history_);
    }
    std::erase_if(history_.entries, [](const HistoryEntry& entry) {
      return entry.action == HistoryEntry::Action::kReserve ||
             entry.action == HistoryEntry::Action::kRelease;
    });
    history_.segments = std::move(used_);
    return std::move(history_);
  }

 private:
  void add(HistoryEntry::Action action, std::uint64_t address, std::uint64_t bytes,
           const TimelineRecord& record) {
    history_.entries.push_back(
        {.action = action, .address = address, .bytes = bytes, .record = record});
  }
  void end_block(Stretches::const_iterator block, const TimelineRecord& record) {
    TimelineRecord freed = block->second.record;  // the freed block's record
    freed.begin = record.begin;
    add(HistoryEntry::Action::kFree, block->first, block->second.requested, freed);
    history_.blocks.erase(block);
  }
  void allocate(const TimelineRecord& record) {
    if (record.bytes == 0) return;
    const std::uint64_t end = record.id + record.bytes;
    for (;;) {
      const auto old = overlapping(history_.blocks, record.id, end);
      if (old == history_.blocks.end()) break;
      end_block(old, record);
    }
    const auto within = overlapping(segments_, record.id, end);
    if (within == segments_.end() || record.id < within->first ||
        end > within->first + within->second.bytes) {
      knows_segments_ = false;
    }
    cover(used_, record.id, end, record);
    std::uint64_t requested = std::min(record.requested, record.bytes);
    if (requested == 0) requested = record.bytes;
    history_.blocks[record.id] = {.bytes = record.bytes, .requested = requested, .record = record};
    add(HistoryEntry::Action::kAllocate, record.id, requested, record);
  }
  void free(const TimelineRecord& record) {
    const auto block = history_.blocks.find(record.id);
    if (block != history_.blocks.end()) end_block(block, record);
  }
  void reserve(const TimelineRecord& record) {
    if (record.bytes == 0) return;
    if (overlapping(segments_, record.id, record.id + record.bytes) != segments_.end()) {
      knows_segments_ = false;
      return;
    }
    segments_[record.id] = {.bytes = record.bytes, .requested = 0, .record = record};
    add(HistoryEntry::Action::kReserve, record.id, record.bytes, record);
  }
  void release(const TimelineRecord& record) {
    const auto segment = segments_.find(record.id);
    const std::uint64_t end = record.id + record.bytes;
    if (segment == segments_.end() || segment->second.bytes != record.bytes ||
        overlapping(history_.blocks, record.id, end) != history_.blocks.end()) {
      knows_segments_ = false;
      return;
    }
    segments_.erase(segment);
    add(HistoryEntry::Action::kRelease, record.id, record.bytes, record);
  }

  History history_;
  Stretches segments_, used_;
  bool knows_segments_ = true;
  std::uint64_t budget_ = 0;
};

}  // namespace

History make_history(const Process& process, std::uint16_t source) {
  std::vector<const TimelineRecord*> records;
  for (const TimelineRecord& record : process.records) {
    if (record.source == source && record.kind <= TimelineKind::kPoolEnd) {
      records.push_back(&record);
    }
  }
  std::stable_sort(
      records.begin(), records.end(),
      [](const TimelineRecord* a, const TimelineRecord* b) { return a->sequence < b->sequence; });
  Follower follower;
  for (const TimelineRecord* record : records) follower.follow(*record);
  return follower.finish();
}

}  // namespace weir::timeline
