#include "tools/timeline/analysis/holders.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "tools/timeline/analysis/grouped_replay.hpp"
#include "tools/timeline/model/timeline.hpp"

namespace weir::timeline {
namespace {

Holding holding_now(const GroupedReplay& grouped, std::uint64_t at, std::size_t most) {
  const PoolReplay& replay = grouped.replay();
  Holding now{.at = at,
              .known = replay.known(),
              .counts = replay.counts(),
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

bool has_names(const Holding& holding, GroupBy by) {
  return std::ranges::any_of(holding.holders, [by](const Holder& holder) {
    return holder.key != key_without_name(by) && holder.key != kKeyFromBefore;
  });
}

std::string missing_names(const Holding& by_label, const Holding& by_kind, const Holding& by_site) {
  if (by_label.holders.empty()) return {};
  std::string missing;
  const auto look = [&missing](const Holding& holding, GroupBy by, const char* what) {
    if (has_names(holding, by)) return;
    missing += (missing.empty() ? "" : ", ") + std::string(what);
  };
  look(by_label, GroupBy::kLabel, "label");
  look(by_kind, GroupBy::kKind, "kind of batch");
  look(by_site, GroupBy::kSite, "call site");
  if (missing.empty()) return {};
  return "Not known here: " + missing +
         ". weir-train names them, and so do programs that use Weir's library or mark batches.";
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

namespace {

double share_lost(double used, double all) { return all > 0 ? std::max(0.0, 1 - used / all) : 0; }

/// Sums of bytes times nanoseconds.
struct Areas {
  double requested = 0;
  double allocated = 0;
  double reserved = 0;

  void add(const PoolReplay& replay, std::uint64_t until) {
    const auto time = static_cast<double>(less_or_zero(until, replay.at()));
    requested += time * static_cast<double>(replay.requested());
    allocated += time * static_cast<double>(replay.counts().allocated);
    reserved += time * static_cast<double>(replay.counts().reserved());
  }
};

}  // namespace

Fragmentation fragmentation(const Index& index, const PoolInfo& pool) {
  Fragmentation figures;
  Areas areas;
  std::uint64_t peak_allocated = 0;
  std::uint64_t peak_held = 0;
  std::uint64_t peak_reserved = 0;
  PoolReplay replay(index, pool);
  while (replay.next()) {
    const PoolCounts& counts = replay.counts();
    areas.add(replay, std::min(replay.next_at(), index.span().end));
    peak_allocated = std::max(peak_allocated, counts.allocated);
    peak_held = std::max(peak_held, add_capped(counts.allocated, counts.awaiting));
    peak_reserved = std::max(peak_reserved, counts.reserved());
    figures.most_unused =
        std::max(figures.most_unused, less_or_zero(counts.reserved(), counts.allocated));
  }
  figures.at_peak =
      share_lost(static_cast<double>(peak_allocated), static_cast<double>(peak_reserved));
  figures.held_at_peak =
      share_lost(static_cast<double>(peak_held), static_cast<double>(peak_reserved));
  figures.mean = share_lost(areas.allocated, areas.reserved);
  figures.waste = share_lost(areas.requested, areas.allocated);
  return figures;
}

}  // namespace weir::timeline
