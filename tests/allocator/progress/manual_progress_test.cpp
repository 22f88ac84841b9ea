// The fake that the other tests rest on.

#include "support/manual_progress.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "support/print.hpp"

namespace weir::testing {
namespace {

using ::testing::ElementsAre;

struct ManualProgressTest : ::testing::Test {
  ManualProgress progress;
  const StreamId a = StreamId::next();
  const StreamId b = StreamId::next();
};

TEST_F(ManualProgressTest, APointComesAfterWhatWasEnqueued) {
  const Point work = progress.enqueue(a);
  const Point point = progress.record(a);
  EXPECT_GT(point.sequence, work.sequence);
  progress.pass(work);
  EXPECT_FALSE(progress.reached(point));
  progress.pass(point);
  EXPECT_TRUE(progress.reached(point));
}

TEST_F(ManualProgressTest, AWaitFinishesWhatTheStreamWasMadeToWaitForFirst) {
  const Point first = progress.enqueue(a);
  progress.make_wait(b, first);
  const Point second = progress.enqueue(b);
  progress.make_wait(a, second);
  const Point last = progress.record(a);
  EXPECT_TRUE(progress.wait(last, {}));
  EXPECT_TRUE(progress.reached(second));
  EXPECT_THAT(progress.waits(), ElementsAre(last));
}

TEST_F(ManualProgressTest, AStreamDoesNotAdvancePastAPointThatItWaitsFor) {
  const Point until = progress.enqueue(a);
  progress.enqueue(b);
  progress.make_wait(b, until);
  progress.enqueue(b);
  progress.advance(b, 100);
  EXPECT_EQ(progress.passed(b), 1U);
  progress.pass(until);
  progress.advance(b, 1);
  EXPECT_EQ(progress.passed(b), 2U);
  progress.advance(b, 100);
  EXPECT_EQ(progress.passed(b), 3U);
}

TEST_F(ManualProgressTest, APointWithoutAnEntryStillCoversAWait) {
  progress.record_without_entries();
  EXPECT_EQ(progress.record(a), progress.record(a));
  const Point until = progress.enqueue(a);
  progress.make_wait(b, until);
  const Point point = progress.record(b);
  progress.advance(b, 100);
  EXPECT_FALSE(progress.reached(point));
}

TEST_F(ManualProgressTest, NoticesALockAndAWaitForWhatNobodySubmitted) {
  static ManualProgress* fake;
  static StreamId stream;
  fake = &progress;
  stream = a;
  EXPECT_NONFATAL_FAILURE(
      {
        Mutex mutex(LockRank::kPool);
        const Lock lock(mutex);
        (void)fake->passed(stream);
      },
      "while a lock is held");
  EXPECT_NONFATAL_FAILURE((void)fake->wait({stream, 7}, {}), "nobody has submitted");
}

}  // namespace
}  // namespace weir::testing
