// The store of events and the queue of fences, over a driver that consists of a few numbers.

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "allocator/progress/events.hpp"
#include "allocator/progress/pause.hpp"

namespace weir {
namespace {

/// The calls to the driver and its results.
struct FakeDriver {
  int made = 0;
  int destroyed = 0;
  int create_code = 0;
  int record_code = 0;
  int passed = 0;  ///< events up to this number are passed
  int query_code = 600;
  std::vector<int> recorded;
};

struct FakeCalls {
  using Event = int;
  using Stream = int;
  using Code = int;
  FakeDriver* driver;
  [[nodiscard]] Code create(Event& event) const noexcept {
    if (driver->create_code == 0) event = ++driver->made;
    return driver->create_code;
  }
  [[nodiscard]] Code record(Event event, Stream /*stream*/) const noexcept {
    if (driver->record_code == 0) driver->recorded.push_back(event);
    return driver->record_code;
  }
  [[nodiscard]] Code query(Event event) const noexcept {
    return event <= driver->passed ? 0 : driver->query_code;
  }
  [[nodiscard]] Code destroy(Event /*event*/) const noexcept {
    ++driver->destroyed;
    return 0;
  }
};
using Store = EventStore<FakeCalls>;

struct EventStoreTest : ::testing::Test {
  FakeDriver driver;
  Store store{FakeCalls{&driver}};
  Store::Events events;
};

TEST_F(EventStoreTest, UsesAnEventAgainThatIsPassed) {
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(store.record(events, 0), 0);
    driver.passed = driver.made;
    ASSERT_EQ(store.take_passed(events), 0);
    ASSERT_TRUE(events.empty());
  }
  EXPECT_EQ(driver.made, 1);
  EXPECT_EQ(driver.recorded.size(), 100U);
}

TEST_F(EventStoreTest, KeepsWhatIsNotPassedWithItsOwner) {
  for (int i = 0; i < 3; ++i) ASSERT_EQ(store.record(events, 0), 0);
  EXPECT_EQ(store.take_passed(events), 600);
  EXPECT_EQ(events.size(), 3U);
  driver.passed = 3;
  driver.query_code = 700;
  EXPECT_EQ(store.take_passed(events), 0);
  EXPECT_TRUE(events.empty());
}

TEST_F(EventStoreTest, RefusedCallsChangeNothing) {
  driver.create_code = 2;
  EXPECT_EQ(store.record(events, 0), 2);
  EXPECT_EQ(store.size(), 0U);
  driver.create_code = 0;
  driver.record_code = 900;
  EXPECT_EQ(store.record(events, 0), 900);
  EXPECT_TRUE(events.empty());
  driver.record_code = 0;
  EXPECT_EQ(store.record(events, 0), 0);
  EXPECT_EQ(driver.made, 1) << "the event that was made before is used";
}

TEST_F(EventStoreTest, DestroysOnlyWhatNobodyUses) {
  for (int i = 0; i < 4; ++i) ASSERT_EQ(store.record(events, 0), 0);
  Store::Events used;
  used.splice(used.begin(), events, events.begin());
  store.give_back(events);
  EXPECT_EQ(store.keep(1), 0);
  EXPECT_EQ(driver.destroyed, 2);
  EXPECT_EQ(store.size(), 2U);
  store.disown(used.size());
  EXPECT_EQ(store.keep(0), 0);
  EXPECT_EQ(driver.destroyed, 3);
  EXPECT_EQ(store.size(), 0U);
}

TEST(EventState, IsReadFromTheDriversCode) {
  EXPECT_EQ(event_state(0), EventState::kPassed);
  EXPECT_EQ(event_state(600), EventState::kNotPassed);
  for (const int code : {900, 904, 907, 908}) EXPECT_EQ(event_state(code), EventState::kCaptured);
  for (const int code : {1, 599, 601, 700, 899, 909}) {
    EXPECT_EQ(event_state(code), EventState::kFailed) << code;
  }
}

struct Numbered {
  std::uint64_t sequence = 0;
};
using Queue = FenceQueue<Numbered>;

TEST(FenceQueue, PointsShareTheNextFence) {
  Queue queue;
  EXPECT_EQ(queue.last(), 0U);
  EXPECT_EQ(queue.add_point(), 1U);
  EXPECT_EQ(queue.add_point(), 1U);
  EXPECT_EQ(queue.points(), 2U);
  EXPECT_EQ(queue.last(), 1U);
  Queue::Fences made(1);
  queue.push(made);
  EXPECT_TRUE(made.empty());
  EXPECT_EQ(queue.points(), 0U);
  EXPECT_EQ(queue.last(), 1U);
  EXPECT_EQ(queue.add_point(), 2U);
}

TEST(FenceQueue, PassesFencesInOrderAndNoneBeforeThoseAheadOfIt) {
  Queue queue;
  Queue::Fences spare(3);
  for (int i = 0; i < 3; ++i) {
    Queue::Fences made;
    made.splice(made.begin(), spare, spare.begin());
    queue.push(made);
  }
  std::uint64_t reached = 0;
  const auto passes = [&](const Numbered& fence) { return fence.sequence <= reached; };
  EXPECT_FALSE(queue.take_passed(spare, passes));
  reached = 2;
  while (queue.take_passed(spare, passes)) EXPECT_EQ(spare.front().sequence, queue.passed());
  EXPECT_EQ(queue.passed(), 2U);
  EXPECT_EQ(spare.size(), 2U);
  EXPECT_FALSE(queue.idle());
  reached = 3;
  EXPECT_TRUE(queue.take_passed(spare, passes));
  EXPECT_TRUE(queue.idle());
  EXPECT_FALSE(queue.take_passed(spare, passes)) << "none is left";
}

TEST(FenceQueue, ANumberThatIsSkippedCanGetItsFenceLater) {
  Queue queue;
  (void)queue.add_point();
  EXPECT_EQ(queue.skip(), 1U);
  EXPECT_EQ(queue.add_point(), 2U);
  Queue::Fences late(1);
  queue.push(late, 1);
  Queue::Fences spare;
  EXPECT_TRUE(queue.take_passed(spare, [](const Numbered&) { return true; }));
  EXPECT_EQ(queue.passed(), 1U);
  EXPECT_FALSE(queue.idle()) << "the second point waits";
}

using std::chrono::microseconds;
using std::chrono::nanoseconds;

/// Returns how many of `operations` are due after `known` ones that took `took` each.
int due_of(int operations, int known, nanoseconds took) {
  SleepSpacing spacing;
  for (int i = 0; i < known; ++i) spacing.note(took);
  int due = 0;
  for (int i = 0; i < operations; ++i) due += spacing.due(0) ? 1 : 0;
  return due;
}

TEST(SleepSpacing, EachOperationIsDueUntilTheirTimeIsKnown) { EXPECT_EQ(due_of(50, 0, {}), 50); }

TEST(SleepSpacing, EachLongOperationIsDue) {
  EXPECT_EQ(due_of(50, 10, SleepSpacing::kApart), 50);
  EXPECT_EQ(due_of(50, 10, std::chrono::seconds(2)), 50);
}

TEST(SleepSpacing, ShortOperationsAreDueAsOftenAsTheirTimeAddsUp) {
  EXPECT_EQ(due_of(400, 10, microseconds(20)), 40);
  EXPECT_EQ(due_of(400, 10, microseconds(150)), 200);
  EXPECT_EQ(due_of(400, 10, nanoseconds(0)), 0);
}

TEST(SleepSpacing, NoMoreAreDueThanAQueueHasRoomFor) {
  SleepSpacing spacing;
  EXPECT_TRUE(spacing.due(SleepSpacing::kMost - 1));
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(spacing.due(SleepSpacing::kMost));
  EXPECT_TRUE(spacing.due(SleepSpacing::kMost - 1)) << "one was passed";
}

TEST(SleepSpacing, OneBehindAllIsEnoughIfTheyEndSoon) {
  SleepSpacing spacing;
  EXPECT_TRUE(spacing.soon(2));
  EXPECT_FALSE(spacing.soon(3));
  for (int i = 0; i < 1000; ++i) spacing.note(microseconds(20));
  EXPECT_TRUE(spacing.soon(19));
  EXPECT_FALSE(spacing.soon(30));
  for (int i = 0; i < 1000; ++i) spacing.note({});
  EXPECT_TRUE(spacing.soon(5'000)) << "operations without any time";
}

TEST(SleepSpacing, FollowsOperationsThatBecomeLonger) {
  SleepSpacing spacing;
  for (int i = 0; i < 1000; ++i) spacing.note(microseconds(1));
  for (int i = 0; i < 400; ++i) spacing.note(microseconds(500));
  EXPECT_GT(spacing.average(), microseconds(490));
  for (int i = 0; i < 400; ++i) spacing.note(microseconds(1));
  EXPECT_LT(spacing.average(), microseconds(3));
}

// Whoever learns of several operations at once gives the first all of their time.
TEST(SleepSpacing, TakesTimesThatAreLearnedInGroups) {
  SleepSpacing spacing;
  for (int i = 0; i < 1000; ++i) spacing.note(i % 10 == 0 ? microseconds(100) : nanoseconds(0));
  EXPECT_NEAR(static_cast<double>(spacing.average().count()), 10'000, 1'500);
}

}  // namespace

}  // namespace weir
