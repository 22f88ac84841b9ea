// Replays of traces small enough to know the result by hand.

#include "tools/replay/measure/engine.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/replay/measure/pools.hpp"
#include "traces.hpp"

namespace weir::testing {
namespace {

using replay::Figures;
using replay::PoolSubject;
using replay::Trace;

/// A pool on addresses alone.
std::unique_ptr<PoolSubject> subject_of(const char* pool, Bytes capacity, std::uint64_t lag = 0) {
  PoolOptions base;
  base.budget = BudgetRequest{.percent = 100};
  return std::make_unique<PoolSubject>(std::make_unique<SimulatedUpstream>(capacity),
                                       replay::parse_pool_choice("t", pool, base).options, lag);
}

Figures figures_of(const Trace& trace, const char* pool, Bytes capacity = gib(1),
                   std::uint64_t lag = 0) {
  return replay::replay(trace, *subject_of(pool, capacity, lag));
}

TEST(ReplayEngine, FiguresOfFiveOperationsAreThoseByHand) {
  const Trace trace = trace_of(
      {allocate(0, 100), allocate(1, 5000), release(0, 100), allocate(2, 50), release(1, 5000)}, 3);
  EXPECT_EQ(replay::peak_requested(trace), Bytes{5100});
  const Figures figures = figures_of(trace, "naive");
  EXPECT_EQ(figures.operations, 5U);
  EXPECT_EQ(figures.peak_requested, Bytes{5100});
  EXPECT_EQ(figures.peak_allocated, kib(12));  // a page, and two
  EXPECT_EQ(figures.peak_reserved, kib(12));
  EXPECT_EQ(figures.waste, kib(12) - Bytes{5100});
  EXPECT_EQ(figures.driver_calls, 2U);  // the third buffer is where the first one was
  EXPECT_EQ(figures.mapped_pages, 0U);
  EXPECT_EQ(figures.waits, 0U);
  EXPECT_EQ(figures.fragmentation(), 0.0);
  EXPECT_EQ(figures.largest_free_share(), std::nullopt);
  EXPECT_FALSE(figures.refusal);
}

TEST(ReplayEngine, FragmentationIsWhatIsReservedAndNotAllocatedAtThePeaks) {
  // Two buffers of a page leave their blocks, which do not serve a request of two pages.
  const Trace trace = trace_of({allocate(0, 4096), allocate(1, 4096), release(0, 4096),
                                release(1, 4096), allocate(2, 8192), release(2, 8192)},
                               3);
  const Figures figures = figures_of(trace, "naive");
  EXPECT_EQ(figures.peak_allocated, kib(8));
  EXPECT_EQ(figures.peak_reserved, kib(16));
  EXPECT_EQ(figures.fragmentation(), 0.5);
  EXPECT_EQ(figures.free_at_peak, kib(8));
  EXPECT_EQ(figures.largest_free_at_peak, kib(4));
  EXPECT_EQ(figures.largest_free_share(), 0.5);
}

TEST(ReplayEngine, PeaksAreThoseOfThePoolsOwnStatistics) {
  std::vector<replay::Operation> operations;
  std::uint64_t size = 1;
  for (std::uint32_t i = 0; i < 400; ++i) {
    size = (size * 48271) % 2147483647;
    operations.push_back(allocate(i, size % 3'000'000 + 1));
    if (i >= 20) operations.push_back(release(i - 20, operations[2 * i - 40].bytes.count));
    if (i < 20) operations.push_back(use(i, operations.back().bytes.count, 1));
  }
  const Trace trace = trace_of(operations, 400);
  for (const PoolKind kind : pool_kinds()) {
    const std::string name(to_string(kind));
    SCOPED_TRACE(name);
    const auto subject = subject_of(name.c_str(), gib(4));
    const Figures figures = replay::replay(trace, *subject);
    const Statistics statistics = subject->pool().statistics();
    EXPECT_EQ(figures.peak_requested, statistics.requested.peak);
    EXPECT_EQ(figures.peak_allocated, statistics.allocated.peak);
    EXPECT_EQ(figures.peak_reserved, statistics.reserved.peak);
    EXPECT_EQ(statistics.allocated.current, Bytes{}) << "what the trace leaves live is freed";
  }
}

TEST(ReplayEngine, UnpooledAsksTheDriverForEveryBufferAndItsFree) {
  const Trace trace = trace_of({allocate(0, 100), release(0, 100), allocate(1, 100)}, 2);
  EXPECT_EQ(figures_of(trace, "unpooled").driver_calls, 3U);
}

TEST(ReplayEngine, ARefusalSaysWhereAndWhatThereWas) {
  const Trace trace = trace_of(
      {allocate(0, 4096), allocate(1, 4096), release(0, 4096), allocate(2, 8192), release(1, 4096)},
      3);
  // The freed page cannot be released while it is in use: there is room for three pages.
  const Figures figures = figures_of(trace, "naive", kib(8));
  ASSERT_TRUE(figures.refusal);
  EXPECT_EQ(figures.operations, 3U);
  EXPECT_EQ(figures.refusal->operation, 4U);
  EXPECT_EQ(figures.refusal->asked, Bytes{8192});
  EXPECT_EQ(figures.refusal->requested, Bytes{4096});
  EXPECT_EQ(figures.refusal->footprint.allocated, kib(4));
  EXPECT_FALSE(replay::completes(trace, *subject_of("naive", kib(8))));
  EXPECT_TRUE(replay::completes(trace, *subject_of("naive", kib(12))));
  EXPECT_FALSE(figures_of(trace, "naive", kib(12)).refusal);
}

TEST(ReplayEngine, ObserversSeeEachOperationWithItsPointerAndLevels) {
  const Trace trace = trace_of({allocate(0, 100), use(0, 100, 1), release(0, 100)}, 1);
  std::vector<const void*> pointers;
  std::vector<std::uint64_t> requested;
  (void)replay::replay(trace, *subject_of("naive", gib(1)), [&](const replay::Step& step) {
    EXPECT_EQ(step.operation, pointers.size());
    EXPECT_EQ(step.what, trace.operations[step.operation]);
    EXPECT_EQ(step.footprint.reserved, kib(4));
    pointers.push_back(step.pointer);
    requested.push_back(step.requested.count);
  });
  ASSERT_EQ(pointers.size(), 3U);
  EXPECT_NE(pointers[0], nullptr);
  EXPECT_EQ(pointers[1], pointers[0]);
  EXPECT_EQ(pointers[2], pointers[0]);
  EXPECT_THAT(requested, ::testing::ElementsAre(100, 100, 0));
}

// With the device behind the host, stream 1 may have stream 0's freed block once the device has
// passed it.

Trace handed_on() {
  return trace_of({allocate(0, 4096, 0), release(0, 4096, 0), allocate(1, 4096, 1)}, 2);
}

TEST(ReplayLag, WithoutLagAFreedBlockIsAnyStreamsAtOnce) {
  EXPECT_EQ(figures_of(handed_on(), "naive", gib(1), 0).driver_calls, 1U);
}

TEST(ReplayLag, AFreeIsPassedThatManyOperationsLater) {
  EXPECT_EQ(figures_of(handed_on(), "naive", gib(1), 1).driver_calls, 1U);
  EXPECT_EQ(figures_of(handed_on(), "naive", gib(1), 2).driver_calls, 2U);
}

TEST(ReplayLag, WhatIsAwaitedTakesTheDeviceThereAndIsCounted) {
  // The block was used on stream 1, so not even stream 0 may have it before the device has passed.
  const Trace trace = trace_of({allocate(0, 4096, 0), use(0, 4096, 1), release(0, 4096, 0),
                                allocate(1, 4096, 0), release(1, 4096, 0)},
                               2);
  const Figures roomy = figures_of(trace, "naive", gib(1), 1000);
  EXPECT_EQ(roomy.waits, 0U);
  EXPECT_EQ(roomy.peak_reserved, kib(8));
  const Figures tight = figures_of(trace, "naive", kib(4), 1000);
  EXPECT_FALSE(tight.refusal);
  EXPECT_EQ(tight.waits, 1U);
  EXPECT_EQ(tight.peak_reserved, kib(4));
}

TEST(ReplayProgress, PassesAPointAfterItsLagAndNotEarlier) {
  replay::ReplayProgress progress(2);
  const StreamId a{1};
  progress.begin_operation();
  const Point first = progress.record(a);
  progress.begin_operation();
  const Point second = progress.record(a);
  EXPECT_FALSE(progress.reached(first));
  progress.begin_operation();
  EXPECT_TRUE(progress.reached(first));
  EXPECT_FALSE(progress.reached(second));
  EXPECT_EQ(progress.waits(), 0U);
  EXPECT_TRUE(progress.wait(second, {}));
  EXPECT_TRUE(progress.reached(second));
  EXPECT_TRUE(progress.wait(second, {}));
  EXPECT_EQ(progress.waits(), 1U);
}

TEST(ReplayProgress, GivesUpAWaitThatIsToStop) {
  replay::ReplayProgress progress(2);
  progress.begin_operation();
  const Point point = progress.record({1});
  std::stop_source stop;
  stop.request_stop();
  EXPECT_FALSE(progress.wait(point, {.stop = stop.get_token()}));
  EXPECT_FALSE(progress.reached(point));
}

}  // namespace
}  // namespace weir::testing
