// The accounting of pools, rebuilt from events.

#include "tools/timeline/analysis/counters.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/random_seed.hpp"
#include "timeline/support/made_timeline.hpp"

namespace weir::timeline {
namespace {

using testing::made_process;

bool is_of_pool(const TimelineRecord& record) { return record.kind <= TimelineKind::kPoolEnd; }

TEST(TimelineCounters, AgreeWithThePoolAtEveryRecord) {
  const Process process = made_process({.barrier_every = 7});
  const Index index(process);
  const AccountingCheck check = check_accounting(index);
  EXPECT_EQ(check.compared,
            static_cast<std::uint64_t>(std::ranges::count_if(process.records, is_of_pool)));
  EXPECT_GT(check.compared, 400U);
  EXPECT_EQ(check.differ, 0U);
  EXPECT_EQ(check.gaps, 0U);
  EXPECT_EQ(check.strays, 0U);
}

TEST(TimelineCounters, EveryFalsifiedEventIsADisagreement) {
  const Process good = made_process({.batches = 3});
  const auto changes_statistics = [](const TimelineRecord& record) {
    return record.kind == TimelineKind::kAllocate || record.kind == TimelineKind::kFree ||
           record.kind == TimelineKind::kSettled || record.kind == TimelineKind::kReserve;
  };
  for (std::size_t i = 0; i < good.records.size(); ++i) {
    if (!changes_statistics(good.records[i])) continue;
    Process bad = good;
    bad.records[i].bytes += 512;
    const AccountingCheck check = check_accounting(Index(bad));
    ASSERT_EQ(check.differ, 1U) << i;
    EXPECT_EQ(check.first_at, bad.records[i].begin);
    const bool is_last = std::none_of(good.records.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                                      good.records.end(), is_of_pool);
    bad = good;
    bad.records.erase(bad.records.begin() + static_cast<std::ptrdiff_t>(i));
    EXPECT_EQ(check_accounting(Index(bad)).differ, is_last ? 0U : 1U) << i;
  }
}

TEST(TimelineCounters, ALostEventIsAGapAndNotADisagreement) {
  Process process = made_process({.batches = 5});
  process.lost = 1;
  const auto allocate =
      std::ranges::find(process.records, TimelineKind::kAllocate, &TimelineRecord::kind);
  process.records.erase(allocate);
  const Index index(process);
  const AccountingCheck check = check_accounting(index);
  EXPECT_EQ(check.differ, 0U);
  EXPECT_EQ(check.gaps, 1U);
  EXPECT_EQ(pool_peaks(index, index.pools().front()).peak_held,
            4 * (16U << 20U) + 10 * (1U << 20U) - 4 * (1U << 20U));
}

/// The process in a recording that begins at `from`: first the pool and its live blocks.
Process begun_late(const Process& whole, std::uint64_t from) {
  Process late = whole;
  std::map<std::uint64_t, TimelineRecord> live;
  TimelineRecord last{};
  late.records.clear();
  for (const TimelineRecord& record : whole.records) {
    if (record.begin >= from) {
      late.records.push_back(record);
      continue;
    }
    if (record.kind == TimelineKind::kAllocate) live[record.id] = record;
    if (record.kind == TimelineKind::kFree) live.erase(record.id);
    if (is_of_pool(record)) last = record;
  }
  TimelineRecord state = last;
  state.begin = state.end = from;
  state.bytes = 1U << 30U;
  state.kind = TimelineKind::kPool;
  late.records.push_back(state);
  for (const auto& [address, block] : live) {
    TimelineRecord record = state;
    record.kind = TimelineKind::kLive;
    record.id = address;
    record.bytes = block.bytes;
    record.requested = block.requested;
    record.name = block.name;
    late.records.push_back(record);
  }
  testing::sort_records(late);
  return late;
}

TEST(TimelineCounters, ALateBeginIsWholeAtEveryMoment) {
  const Process whole = made_process({.batches = 6});
  for (std::size_t i = 20; i < whole.records.size(); i += 7) {
    const Process late = begun_late(whole, whole.records[i].begin);
    const AccountingCheck check = check_accounting(Index(late));
    ASSERT_EQ(check.differ + check.gaps + check.strays, 0U) << i;
  }
}

TEST(TimelineCounters, ALiveBlockThatIsNotToldMakesTheBeginUnknown) {
  const Process whole = made_process({.batches = 6});
  Process late = begun_late(whole, whole.records[whole.records.size() / 2].begin);
  const auto live = std::ranges::find(late.records, TimelineKind::kLive, &TimelineRecord::kind);
  ASSERT_NE(live, late.records.end());
  late.records.erase(live);
  EXPECT_EQ(check_accounting(Index(late)).gaps, 1U);
}

TEST(TimelineCounters, ThePeakIsTheOneThatATrivialModelFinds) {
  const std::uint64_t seed = weir::testing::random_seed();
  SCOPED_TRACE(weir::testing::seed_message(seed));
  for (std::uint64_t round = 0; round < 20; ++round) {
    const Process process = made_process({.seed = seed + round, .batches = 10, .jitter = 0.9});
    std::uint64_t held = 0;
    std::uint64_t allocated = 0;
    for (const TimelineRecord& record : process.records) {
      held = std::max(held, record.allocated + record.awaiting);
      allocated = std::max(allocated, record.allocated);
    }
    const Index index(process);
    const PoolPeaks peaks = pool_peaks(index, index.pools().front());
    EXPECT_EQ(peaks.peak_held, held);
    EXPECT_EQ(peaks.peak_allocated, allocated);
    EXPECT_EQ(peaks.name, "device");
    EXPECT_NE(peaks.peak_batch, 0U);
  }
}

}  // namespace
}  // namespace weir::timeline
