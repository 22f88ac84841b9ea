// What a pool reports to a recorder: each change of its accounting, in order, with the new values.
// The tests rebuild the accounting from the events alone.

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <thread>

#include "allocator/pool_random_run.hpp"
#include "support/random_seed.hpp"
#include "support/told_timeline.hpp"

namespace weir {
namespace {

using testing::kAllKinds;
using testing::ManualProgress;
using testing::options_of;
using testing::RandomRun;
using testing::ToldTimeline;
using Kind = TimelineKind;

/// The accounting of one pool, rebuilt from its events.
struct Rebuilt {
  std::uint64_t allocated = 0;
  std::uint64_t awaiting = 0;
  std::uint64_t cached = 0;
  std::uint64_t reserved = 0;
  std::map<std::uint64_t, std::uint64_t> live;  ///< by address

  void take(const TimelineRecord& record) {
    switch (record.kind) {
      case Kind::kAllocate:
        EXPECT_TRUE(live.emplace(record.id, record.bytes).second) << "handed out twice";
        EXPECT_LE(record.requested, record.bytes);
        allocated += record.bytes;
        cached -= record.bytes;
        break;
      case Kind::kFree:
        ASSERT_EQ(live.count(record.id), 1U) << "freed, and nobody had it";
        EXPECT_EQ(live.at(record.id), record.bytes);
        live.erase(record.id);
        allocated -= record.bytes;
        (record.detail == 1 ? awaiting : cached) += record.bytes;
        break;
      case Kind::kSettled:
        awaiting -= record.bytes;
        cached += record.bytes;
        break;
      case Kind::kReserve:
        reserved += record.bytes;
        cached += record.bytes;
        break;
      case Kind::kRelease:
        reserved -= record.bytes;
        cached -= record.bytes;
        break;
      case Kind::kPoolEnd:
        *this = {};
        break;
      default:
        break;
    }
  }
};

void expect_statistics_follow(const std::vector<TimelineRecord>& records) {
  std::map<std::uint16_t, Rebuilt> pools;
  std::map<std::uint16_t, std::uint64_t> last;
  for (const TimelineRecord& record : records) {
    if (record.sequence == 0) continue;
    ASSERT_EQ(record.sequence, last[record.source] + 1) << "one lock orders them";
    last[record.source] = record.sequence;
    Rebuilt& pool = pools[record.source];
    pool.take(record);
    ASSERT_EQ(record.allocated, pool.allocated) << "at " << record.sequence;
    ASSERT_EQ(record.awaiting, pool.awaiting) << "at " << record.sequence;
    ASSERT_EQ(record.cached, pool.cached) << "at " << record.sequence;
    ASSERT_EQ(pool.reserved, pool.allocated + pool.awaiting + pool.cached);
  }
  EXPECT_FALSE(pools.empty());
}

TEST(PoolTimeline, TheStatisticsFollowFromTheEventsAlone) {
  std::uint64_t seed = testing::random_seed();
  for (const PoolKind kind : kAllKinds) {
    for (const bool faults : {false, true}) {
      SCOPED_TRACE(std::string(to_string(kind)) + (faults ? ", faults, " : ", ") +
                   testing::seed_message(testing::random_seed()));
      const ToldTimeline told;
      RandomRun({.kind = kind, .faults = faults, .seed = ++seed, .steps = 3000}).run();
      expect_statistics_follow(told.records());
      EXPECT_FALSE(told.of(Kind::kAllocate).empty());
      EXPECT_FALSE(told.of(Kind::kRelease).empty());
      EXPECT_EQ(told.of(Kind::kPool).size(), 1U);
      ASSERT_EQ(told.of(Kind::kPoolEnd).size(), 1U);
      EXPECT_EQ(told.of(Kind::kPoolEnd).front().sequence, told.records().back().sequence)
          << "readers order by it, and the end is last";
      if (HasFatalFailure()) return;
    }
  }
}

class PoolTold : public ::testing::Test {
 protected:
  std::unique_ptr<Pool> make(PoolOptions options = options_of(kib(64))) {
    return std::make_unique<Pool>(DeviceMemory{upstream_, progress_}, std::move(options));
  }

  SimulatedUpstream upstream_{mib(1)};
  ManualProgress progress_;
  const StreamId stream_ = StreamId::next();
  const StreamId other_ = StreamId::next();
};

TEST_F(PoolTold, AnAllocationCarriesItsLabelBatchAndCallSite) {
  const auto pool = make();
  const ToldTimeline told;
  const TimelineScope scope(41, "loop.py", 88);
  pool->deallocate(pool->allocate(Bytes{100}, stream_, "activations"), stream_);
  const auto records = told.of(Kind::kAllocate);
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(told.text(records[0].name), "activations");
  EXPECT_EQ(told.text(records[0].site), "loop.py:88");
  EXPECT_EQ(records[0].batch, 41U);
  EXPECT_EQ(records[0].requested, 100U);
  EXPECT_EQ(records[0].stream, stream_.value);
}

TEST_F(PoolTold, SaysWhichStageServed) {
  const auto pool = make();
  const ToldTimeline told;
  void* const first = pool->allocate(kib(64), stream_);  // new
  pool->deallocate(first, stream_);
  pool->deallocate(pool->allocate(kib(64), stream_), stream_);  // its own
  pool->deallocate(pool->allocate(kib(64), other_), other_);    // the other's, not passed
  progress_.pass_all(other_);
  pool->deallocate(pool->allocate(kib(64), stream_), stream_);  // passed
  std::vector<TimelineServed> served;
  for (const auto& record : told.of(Kind::kAllocate)) {
    served.push_back(static_cast<TimelineServed>(record.detail));
  }
  EXPECT_EQ(served, (std::vector{TimelineServed::kGrown, TimelineServed::kOwn,
                                 TimelineServed::kHandedOver, TimelineServed::kPassed}));
}

TEST_F(PoolTold, ALateRecorderIsToldWhatIsThere) {
  PoolOptions options = options_of(kib(64));
  options.place = {.name = "cpu", .device = 3, .host = false};
  const auto pool = make(options);
  void* const held = pool->allocate(kib(8), stream_, "weights");
  const ToldTimeline told;
  for_each_source([&](TimelineSource& source) { source.record_live(told.itself()); });
  const auto pools = told.of(Kind::kPool);
  ASSERT_EQ(pools.size(), 1U);
  EXPECT_EQ(told.text(pools[0].name), "cpu");
  EXPECT_EQ(pools[0].device, 3U);
  EXPECT_EQ(pools[0].bytes, kib(64).count);
  EXPECT_EQ(pools[0].allocated, kib(8).count);
  const auto live = told.of(Kind::kLive);
  ASSERT_EQ(live.size(), 1U);
  EXPECT_EQ(told.text(live[0].name), "weights");
  EXPECT_EQ(live[0].id, reinterpret_cast<std::uintptr_t>(held));
  pool->deallocate(held, stream_);
}

TEST_F(PoolTold, AnOutOfMemoryNamesTheCommandThatShowsWhatLedToIt) {
  const auto pool = make();
  const ToldTimeline told;
  std::string text;
  try {
    (void)pool->allocate(mib(1), stream_, "too much");
  } catch (const OutOfMemory& error) {
    text = error.what();
    EXPECT_EQ(error.figures().asked, mib(1));
  }
  EXPECT_EQ(told.failures(), 1U);
  EXPECT_NE(text.find("\n  what led to it: the command"), std::string::npos) << text;
  const auto failures = told.of(Kind::kFailure);
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_EQ(told.text(failures[0].name), "too much");
}

TEST_F(PoolTold, AWaitForTheDeviceIsASlice) {
  const auto pool = make();
  void* const held = pool->allocate(kib(64), stream_);
  pool->record_use(held, other_);
  (void)progress_.enqueue(other_);
  pool->deallocate(held, stream_);
  const ToldTimeline told;
  pool->deallocate(pool->allocate(kib(64), stream_, "next"), stream_);
  const auto waits = told.of(Kind::kPoolWait);
  ASSERT_EQ(waits.size(), 1U);
  EXPECT_LT(waits[0].begin, waits[0].end);
  EXPECT_EQ(told.text(waits[0].name), "next");
  EXPECT_EQ(waits[0].bytes, kib(64).count);
}

TEST_F(PoolTold, LimitsAndPressureAreTold) {
  const auto pool = make();
  const ToldTimeline told;
  pool->set_limits(kib(32), {});
  void* const all = pool->allocate(kib(32), stream_);
  ASSERT_EQ(told.of(Kind::kBudget).size(), 1U);
  EXPECT_EQ(told.of(Kind::kBudget)[0].bytes, kib(32).count);
  ASSERT_EQ(told.of(Kind::kPressure).size(), 1U);
  EXPECT_EQ(told.of(Kind::kPressure)[0].detail, static_cast<int>(PressureLevel::kHard));
  pool->deallocate(all, stream_);
}

TEST_F(PoolTold, FiguresAreTheDevicesAndNotTheHosts) {
  PoolOptions host = options_of(kib(64));
  host.place = {.name = "staging", .host = true};
  const auto device = make();
  const auto staging = make(host);
  void* const one = device->allocate(kib(8), stream_);
  void* const two = staging->allocate(kib(16), stream_);
  LiveFigures figures;
  for_each_source([&](TimelineSource& source) { source.add_figures(figures); });
  EXPECT_EQ(figures.budget, kib(64));
  EXPECT_EQ(figures.allocated, kib(8));
  EXPECT_EQ(figures.reserved, kib(8));
  device->deallocate(one, stream_);
  staging->deallocate(two, stream_);
}

TEST_F(PoolTold, FiguresOfADeviceAreOfItsPoolsTogetherAndTheirBudgetIsOne) {
  PoolOptions options = options_of(kib(64));
  options.place = {.name = "GPU 1", .device = 2};
  const auto first = make(options);
  const auto second = make(options);
  const auto other = make();
  void* const one = first->allocate(kib(8), stream_);
  void* const two = second->allocate(kib(16), stream_);
  LiveFigures figures;
  for_each_source([&](TimelineSource& source) { source.add_figures(figures); });
  ASSERT_EQ(figures.device_count, 2U);
  const DeviceFigures& gpu = *figures.of(2);
  EXPECT_EQ(gpu.budget, kib(64));
  EXPECT_EQ(gpu.allocated, kib(24));
  EXPECT_EQ(gpu.reserved, kib(24));
  EXPECT_EQ(figures.of(0)->reserved, kib(0));
  EXPECT_EQ(figures.budget, kib(128)) << "of the GPU, and of the pool that is of none";
  first->deallocate(one, stream_);
  second->deallocate(two, stream_);
}

TEST(TimelineSources, DevicesThatHaveNoRoomAreLeftOut) {
  LiveFigures figures;
  for (std::uint16_t i = 0; i < LiveFigures::kMostDevices; ++i) EXPECT_NE(figures.of(i), nullptr);
  EXPECT_EQ(figures.of(100), nullptr);
  EXPECT_EQ(figures.of(3)->device, 3);
}

// This ends: each thread makes a fixed number of pools, and a visit waits for none of them.
TEST(TimelineSources, ComeAndGoWhileOthersLook) {
  SimulatedUpstream upstream(mib(1));
  ManualProgress progress;
  const ToldTimeline told;
  std::atomic<bool> done{false};
  std::thread visitor([&] {
    while (!done) {
      for_each_source([&](TimelineSource& source) {
        LiveFigures figures;
        source.add_figures(figures);
        source.record_live(told.itself());
        EXPECT_NE(source.number(), 0U);
      });
    }
  });
  std::vector<std::thread> makers;
  for (int i = 0; i < 3; ++i) {
    makers.emplace_back([&] {
      const StreamId stream = StreamId::next();
      for (int round = 0; round < 100; ++round) {
        Pool pool({upstream, progress}, options_of(kib(64)));
        pool.deallocate(pool.allocate(kib(4), stream), stream);
      }
    });
  }
  for (std::thread& maker : makers) maker.join();
  done = true;
  visitor.join();
  EXPECT_EQ(told.of(Kind::kPoolEnd).size(), 300U);
}

}  // namespace
}  // namespace weir
