#include "tools/timeline/analysis/holders.hpp"

#include <algorithm>
#include <utility>

#include "tools/timeline/analysis/groups.hpp"

namespace weir::timeline {

std::uint32_t GroupedReplay::key_of(const TimelineRecord& block) const {
  const bool before = block.kind == TimelineKind::kLive && block.batch == 0;
  switch (by_) {
    case GroupBy::kLabel:
      return block.name;
    case GroupBy::kSite:
      return block.site;
    case GroupBy::kKind:
      return before ? kFromBefore : index_->kind_of_batch(block.batch);
    case GroupBy::kBatch:
      return before ? kFromBefore : block.batch;
  }
  return 0;
}

std::string GroupedReplay::text(std::uint32_t key) const {
  if (key == kFromBefore) return "from before the recording";
  if (by_ == GroupBy::kBatch) {
    if (key == 0) return "no batch";
    const std::string_view kind = index_->process().name(index_->kind_of_batch(key));
    return "batch " + std::to_string(key) + (kind.empty() ? "" : " (" + std::string(kind) + ")");
  }
  const std::string_view name = index_->process().name(key);
  if (!name.empty()) return std::string(name);
  if (by_ == GroupBy::kLabel) return "no label";
  return by_ == GroupBy::kSite ? "unknown place" : "no batch";
}

std::size_t GroupedReplay::group_of(const TimelineRecord& block) {
  const std::uint32_t key = key_of(block);
  const auto [place, fresh] = places_.try_emplace(key, groups_.size());
  if (fresh) groups_.push_back({.key = key});
  return place->second;
}

void GroupedReplay::give(const TimelineRecord& block) {
  grown_ = group_of(block);
  Group& group = groups_[grown_];
  group.bytes = add_capped(group.bytes, block.bytes);
  group.requested = add_capped(group.requested, block.requested);
  if (block.kind == TimelineKind::kLive)
    group.from_before = add_capped(group.from_before, block.bytes);
  ++group.blocks;
  bytes_ = add_capped(bytes_, block.bytes);
}

void GroupedReplay::take(const TimelineRecord& block) {
  shrunk_ = group_of(block);
  Group& group = groups_[shrunk_];
  group.bytes = less_or_zero(group.bytes, block.bytes);
  group.requested = less_or_zero(group.requested, block.requested);
  if (block.kind == TimelineKind::kLive)
    group.from_before = less_or_zero(group.from_before, block.bytes);
  group.blocks = less_or_zero(group.blocks, 1);
  bytes_ = less_or_zero(bytes_, block.bytes);
}

bool GroupedReplay::next() {
  grown_ = shrunk_ = kNoGroup;
  if (!replay_.next()) return false;
  const TimelineRecord& record = replay_.record();
  if (replay_.anew() || record.kind == TimelineKind::kPoolEnd) {
    for (Group& group : groups_) group = {.key = group.key};
    bytes_ = 0;
    waiting_.clear();
    waiting_bytes_ = 0;
  }
  if (const TimelineRecord* block = replay_.ended()) {
    take(*block);
    if (record.kind == TimelineKind::kFree && record.detail == 1) {
      waiting_.push_back({.group = shrunk_, .bytes = block->bytes});
      waiting_bytes_ = add_capped(waiting_bytes_, block->bytes);
      groups_[shrunk_].awaiting = add_capped(groups_[shrunk_].awaiting, block->bytes);
    }
  }
  if (replay_.hands_out()) give(record);
  pass_oldest();
  return true;
}

void GroupedReplay::pass_oldest() {
  const std::uint64_t kept = replay_.books().awaiting;
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

namespace {

Holding holding_now(const GroupedReplay& grouped, std::uint64_t at, std::size_t most) {
  const PoolReplay& replay = grouped.replay();
  Holding now{.at = at,
              .known = replay.known(),
              .books = replay.books(),
              .budget = replay.budget(),
              .others = {.key = "other"}};
  std::vector<Holder> all;
  for (const GroupedReplay::Group& group : grouped.groups()) {
    if (group.blocks == 0 && group.awaiting == 0) continue;
    all.push_back({.key = grouped.text(group.key),
                   .bytes = group.bytes,
                   .requested = group.requested,
                   .blocks = group.blocks,
                   .from_before = group.from_before,
                   .awaiting = group.awaiting});
  }
  const auto larger = [](const Holder& a, const Holder& b) {
    const std::uint64_t of_a = add_capped(a.bytes, a.awaiting);
    const std::uint64_t of_b = add_capped(b.bytes, b.awaiting);
    return of_a != of_b ? of_a > of_b : a.key < b.key;
  };
  const std::size_t kept = std::min(most, all.size());
  std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(kept), all.end(),
                    larger);
  for (std::size_t i = kept; i < all.size(); ++i) {
    now.others.bytes = add_capped(now.others.bytes, all[i].bytes);
    now.others.requested = add_capped(now.others.requested, all[i].requested);
    now.others.blocks += all[i].blocks;
    now.others.from_before = add_capped(now.others.from_before, all[i].from_before);
    now.others.awaiting = add_capped(now.others.awaiting, all[i].awaiting);
  }
  all.resize(kept);
  now.holders = std::move(all);
  return now;
}

}  // namespace

std::vector<Holding> holders_at(const Index& index, const PoolInfo& pool,
                                std::span<const std::uint64_t> times, GroupBy by,
                                std::size_t most) {
  GroupedReplay grouped(index, pool, by);
  std::vector<Holding> holdings;
  holdings.reserve(times.size());
  std::uint64_t before = 0;
  bool more = true;
  for (const std::uint64_t time : times) {
    before = std::max(before, time);
    while (more && grouped.replay().next_at() <= before) more = grouped.next();
    holdings.push_back(holding_now(grouped, time, most));
  }
  return holdings;
}

std::vector<Failure> failures(const Index& index, std::size_t most, std::size_t holders) {
  std::vector<Failure> failures;
  if (index.of(TimelineKind::kFailure).empty()) return failures;
  const Process& process = index.process();
  for (const PoolInfo& pool : index.pools()) {
    GroupedReplay grouped(index, pool, GroupBy::kLabel);
    std::size_t found = 0;  // each pool may contribute its first failures
    while (found < most && grouped.next()) {
      const TimelineRecord& record = grouped.replay().record();
      if (record.kind != TimelineKind::kFailure) continue;
      ++found;
      failures.push_back({.at = grouped.replay().at(),
                          .source = pool.source,
                          .bytes = record.bytes,
                          .requested = record.requested,
                          .label = std::string(process.name(record.name)),
                          .site = std::string(process.name(record.site)),
                          .batch = record.batch,
                          .kind = std::string(process.name(index.kind_of_batch(record.batch))),
                          .holding = holding_now(grouped, grouped.replay().at(), holders)});
    }
  }
  std::ranges::stable_sort(failures, {}, &Failure::at);
  if (failures.size() > most) failures.resize(most);
  return failures;
}

}  // namespace weir::timeline
