// Who holds memory, batches, and stacks.

#include "tools/timeline/analysis/holders.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "timeline/support/made_timeline.hpp"
#include "tools/timeline/analysis/batches.hpp"

namespace weir::timeline {
namespace {

using testing::made_process;

TEST(TimelineHolders, AreTheBlocksThatATrivialModelHolds) {
  const Process process = made_process({.batches = 8});
  const Index index(process);
  std::vector<std::uint64_t> times;
  for (std::size_t i = 10; i < process.records.size(); i += 13)
    times.push_back(process.records[i].begin);
  const auto holdings = holders_at(index, index.pools().front(), times, GroupBy::kLabel, 100);
  ASSERT_EQ(holdings.size(), times.size());
  for (std::size_t i = 0; i < times.size(); ++i) {
    std::map<std::uint64_t, TimelineRecord> live;
    std::map<std::string, std::uint64_t> held;
    for (const TimelineRecord& record : process.records) {
      if (record.begin > times[i]) break;
      if (record.kind == TimelineKind::kAllocate) live[record.id] = record;
      if (record.kind == TimelineKind::kFree) live.erase(record.id);
    }
    for (const auto& [address, block] : live)
      held[std::string(process.name(block.name))] += block.bytes;
    std::map<std::string, std::uint64_t> told;
    for (const Holder& holder : holdings[i].holders) {
      if (holder.blocks != 0) told[holder.key] = holder.bytes;
    }
    ASSERT_EQ(told, held);
    EXPECT_TRUE(std::ranges::is_sorted(holdings[i].holders, std::ranges::greater{},
                                       [](const Holder& one) { return one.bytes + one.awaiting; }));
    std::uint64_t awaiting = holdings[i].others.awaiting;
    for (const Holder& holder : holdings[i].holders) awaiting += holder.awaiting;
    EXPECT_EQ(awaiting, holdings[i].counts.awaiting);
    EXPECT_TRUE(holdings[i].known);
  }
}

TEST(TimelineHolders, WhatIsLeftOutIsSummed) {
  const Process process = made_process({.batches = 2});
  const Index index(process);
  const std::vector<std::uint64_t> end{index.span().end};
  const auto all = holders_at(index, index.pools().front(), end, GroupBy::kLabel, 100).front();
  const auto none = holders_at(index, index.pools().front(), end, GroupBy::kLabel, 0).front();
  EXPECT_TRUE(none.holders.empty());
  EXPECT_EQ(none.others.bytes, all.counts.allocated);
  EXPECT_EQ(none.others.blocks, 4U);
  EXPECT_EQ(all.others.blocks, 0U);
}

TEST(TimelineHolders, AFailureNamesItsBatchAndWhoHeldTheMemory) {
  const Process process = made_process({.batches = 5, .fails_in = 3});
  const auto failed = failures(Index(process));
  ASSERT_EQ(failed.size(), 1U);
  EXPECT_EQ(failed.front().batch, 3U);
  EXPECT_EQ(failed.front().kind, "train");
  EXPECT_EQ(failed.front().label, "too large");
  EXPECT_EQ(failed.front().site, "model.py:99");
  ASSERT_FALSE(failed.front().holding.holders.empty());
  EXPECT_EQ(failed.front().holding.holders.front().key, "weights");
  EXPECT_EQ(failed.front().holding.holders.front().bytes, 64U << 20U);
}

TEST(TimelineHolders, TheFirstFailuresAreThoseOfAllPools) {
  constexpr std::uint16_t kSource = 7;
  Process process;
  process.records = {{.begin = 1, .source = 1, .kind = TimelineKind::kFailure},
                     {.begin = 2, .source = kSource, .kind = TimelineKind::kFailure},
                     {.begin = 3, .source = 1, .kind = TimelineKind::kFailure}};
  const auto failed = failures(Index(process), 2);
  ASSERT_EQ(failed.size(), 2U);
  EXPECT_EQ(failed.front().source, 1);
  EXPECT_EQ(failed.back().source, kSource);
}

TEST(TimelineBatches, ThoseThatStalledAreListedTheLongestFirst) {
  Process process = made_process({.batches = 10, .run_ahead = 1});
  const auto all = stalled_batches(Index(process));
  ASSERT_EQ(all.size(), 9U) << "the first was admitted at once";
  EXPECT_TRUE(std::ranges::is_sorted(all, std::ranges::greater{}, &StalledBatch::stalled));
  std::uint64_t stalled = 0;
  for (const StalledBatch& batch : all) {
    EXPECT_NE(batch.number, 1U);
    EXPECT_EQ(batch.stalls, 1U);
    EXPECT_EQ(batch.peak, 5U << 20U);
    EXPECT_EQ(process.name(batch.kind), "train");
    stalled += batch.stalled;
  }
  const StallFigures figures = stall_figures(Index(process));
  EXPECT_EQ(figures.stalls().count, 9U);
  EXPECT_EQ(figures.stalls().total, stalled);
  // A stall without a batch is that of the next batch of its thread.
  for (TimelineRecord& record : process.records)
    if (record.kind == TimelineKind::kStall) record.batch = 0;
  const auto found = stalled_batches(Index(process));
  EXPECT_TRUE(std::ranges::equal(all, found, {}, &StalledBatch::number, &StalledBatch::number));
}

/// Returns a function that adds records of one pool, each without a length.
auto adder_to(Process& process) {
  return [&process](TimelineKind kind, std::uint64_t at, TimelineRecord record) {
    record.kind = kind;
    record.begin = record.end = at;
    record.sequence = process.records.size() + 1;
    record.source = 1;
    process.records.push_back(record);
  };
}

TEST(TimelineFragmentation, IsWhatIsReservedAndOfNoUse) {
  Process process;
  const auto add = adder_to(process);
  add(TimelineKind::kPool, 0, {.bytes = 1000});
  add(TimelineKind::kReserve, 0, {.bytes = 400, .cached = 400});
  add(TimelineKind::kAllocate, 0,
      {.id = 1, .bytes = 200, .requested = 150, .allocated = 200, .cached = 200});
  add(TimelineKind::kFree, 100, {.id = 1, .bytes = 200, .requested = 150, .cached = 400});
  add(TimelineKind::kRelease, 200, {.bytes = 400});
  process.complete = true;
  const Index index(process);
  ASSERT_EQ(check_accounting(index).differ, 0U);
  const auto figures = fragmentation(index, index.pools().front());
  EXPECT_DOUBLE_EQ(figures.at_peak, 0.5);
  EXPECT_DOUBLE_EQ(figures.held_at_peak, 0.5);
  EXPECT_DOUBLE_EQ(figures.mean, 0.75);
  EXPECT_DOUBLE_EQ(figures.waste, 0.25);
  EXPECT_EQ(figures.most_unused, 400U);
}

TEST(TimelineFragmentation, MemoryThatAwaitsTheDeviceIsHeld) {
  Process process;
  const auto add = adder_to(process);
  add(TimelineKind::kPool, 0, {.bytes = 1000});
  add(TimelineKind::kReserve, 0, {.bytes = 400, .cached = 400});
  add(TimelineKind::kAllocate, 0,
      {.id = 1, .bytes = 200, .requested = 200, .allocated = 200, .cached = 200});
  add(TimelineKind::kFree, 100,
      {.id = 1, .bytes = 200, .requested = 200, .awaiting = 200, .cached = 200, .detail = 1});
  add(TimelineKind::kAllocate, 200,
      {.id = 2, .bytes = 100, .requested = 100, .allocated = 100, .awaiting = 200, .cached = 100});
  process.complete = true;
  const Index index(process);
  const auto figures = fragmentation(index, index.pools().front());
  EXPECT_DOUBLE_EQ(figures.at_peak, 0.5);
  EXPECT_DOUBLE_EQ(figures.held_at_peak, 0.25);
}

}  // namespace
}  // namespace weir::timeline
