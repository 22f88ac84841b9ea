#include "tools/timeline/analysis/grouped_replay.hpp"

#include <algorithm>
#include <string_view>

namespace weir::timeline {

std::string_view key_without_name(GroupBy by) noexcept {
  if (by == GroupBy::kLabel) return "no label";
  return by == GroupBy::kSite ? "unknown place" : "no batch";
}

std::uint32_t GroupedReplay::key_of(const TimelineRecord& block) const {
  const bool before = block.kind == TimelineKind::kLive && block.batch == 0;
  switch (by_) {
    case GroupBy::kLabel:
      return block.name;
    case GroupBy::kSite:
      return block.site;
    case GroupBy::kKind:
      return before ? kFromBefore : index_->kind_of_batch(block.batch);
  }
  return 0;
}

std::string GroupedReplay::text(std::uint32_t key) const {
  if (key == kFromBefore) return std::string(kKeyFromBefore);
  const std::string_view name = index_->process().name(key);
  return std::string(name.empty() ? key_without_name(by_) : name);
}

std::size_t GroupedReplay::group_of(const TimelineRecord& block) {
  const std::uint32_t key = key_of(block);
  const auto [place, fresh] = places_.try_emplace(key, groups_.size());
  if (fresh) groups_.push_back({.key = key});
  return place->second;
}

void GroupedReplay::give(const TimelineRecord& block) {
  Group& group = groups_[group_of(block)];
  group.bytes = add_capped(group.bytes, block.bytes);
  group.requested = add_capped(group.requested, block.requested);
  if (block.kind == TimelineKind::kLive)
    group.from_before = add_capped(group.from_before, block.bytes);
  ++group.blocks;
}

std::size_t GroupedReplay::take(const TimelineRecord& block) {
  const std::size_t place = group_of(block);
  Group& group = groups_[place];
  group.bytes = less_or_zero(group.bytes, block.bytes);
  group.requested = less_or_zero(group.requested, block.requested);
  if (block.kind == TimelineKind::kLive)
    group.from_before = less_or_zero(group.from_before, block.bytes);
  group.blocks = less_or_zero(group.blocks, 1);
  return place;
}

bool GroupedReplay::next() {
  if (!replay_.next()) return false;
  const TimelineRecord& record = replay_.record();
  if (replay_.anew() || record.kind == TimelineKind::kPoolEnd) {
    for (Group& group : groups_) group = {.key = group.key};
    waiting_.clear();
    waiting_bytes_ = 0;
  }
  if (const TimelineRecord* block = replay_.ended()) {
    const std::size_t shrunk = take(*block);
    if (record.kind == TimelineKind::kFree && record.detail == 1) {
      waiting_.push_back({.group = shrunk, .bytes = block->bytes});
      waiting_bytes_ = add_capped(waiting_bytes_, block->bytes);
      groups_[shrunk].awaiting = add_capped(groups_[shrunk].awaiting, block->bytes);
    }
  }
  if (replay_.hands_out()) give(record);
  pass_oldest();
  return true;
}

void GroupedReplay::pass_oldest() {
  const std::uint64_t kept = replay_.counts().awaiting;
  while (waiting_bytes_ > kept && !waiting_.empty()) {
    Waiting& oldest = waiting_.front();
    const std::uint64_t passed = std::min(oldest.bytes, waiting_bytes_ - kept);
    Group& group = groups_[oldest.group];
    group.awaiting = less_or_zero(group.awaiting, passed);
    waiting_bytes_ -= passed;
    oldest.bytes -= passed;
    if (oldest.bytes == 0) waiting_.pop_front();
  }
}

}  // namespace weir::timeline
