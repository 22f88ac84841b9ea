// How a pool reports its pressure.

#include <gtest/gtest.h>

#include <vector>

#include "allocator/pool_fixture.hpp"
#include "support/told_timeline.hpp"

namespace weir {
namespace {

using testing::options_of;

struct PoolPressure : testing::PoolFixture, ::testing::WithParamInterface<PoolKind> {
  /// Each change of level so far, as recorders receive it.
  [[nodiscard]] std::vector<TimelineRecord> heard() const {
    return told.of(TimelineKind::kPressure);
  }
  /// The last reported level.
  [[nodiscard]] PressureLevel last_heard() const {
    return static_cast<PressureLevel>(heard().back().detail);
  }

  testing::ToldTimeline told;
  Pool pool{memory(), options_of(kib(400), GetParam())};
};

INSTANTIATE_TEST_SUITE_P(Kinds, PoolPressure, ::testing::ValuesIn(testing::kKeepingKinds),
                         testing::kind_name);

TEST_P(PoolPressure, IsReadFromOneMoment) {
  (void)pool.allocate(kib(4), a);
  void* awaiting = pool.allocate(kib(8), a);
  void* cached = pool.allocate(kib(16), a);
  pool.record_use(awaiting, b);
  pool.deallocate(awaiting, a);
  pool.deallocate(cached, a);
  const Pressure pressure = pool.pressure();
  EXPECT_EQ(pressure.held, kib(12)) << "allocated and awaiting, not cached";
  EXPECT_EQ(pressure.budget, kib(400));
  EXPECT_EQ(pressure.level, PressureLevel::kNone);
}

TEST_P(PoolPressure, IsToldOncePerChange) {
  void* half = pool.allocate(kib(256), a);
  EXPECT_EQ(heard().size(), 0U);
  void* more = pool.allocate(kib(64), a);  // 80%
  ASSERT_EQ(heard().size(), 1U);
  EXPECT_EQ(last_heard(), PressureLevel::kSoft);
  EXPECT_EQ(heard().back().bytes, kib(320).count);
  EXPECT_EQ(pool.pressure().budget, kib(400));
  void* little = pool.allocate(kib(4), a);
  EXPECT_EQ(heard().size(), 1U);
  void* rest = pool.allocate(kib(64), a);  // 97%
  ASSERT_EQ(heard().size(), 2U);
  EXPECT_EQ(last_heard(), PressureLevel::kHard);
  pool.deallocate(half, a);  // 33%
  ASSERT_EQ(heard().size(), 3U);
  EXPECT_EQ(last_heard(), PressureLevel::kNone);
  EXPECT_EQ(pool.pressure().level, PressureLevel::kNone);
  for (void* pointer : {more, little, rest}) pool.deallocate(pointer, a);
  EXPECT_EQ(heard().size(), 3U);
}

TEST_P(PoolPressure, FollowsTheDeviceAndTheBudget) {
  void* pointer = pool.allocate(kib(256), a);
  pool.record_use(pointer, b);
  pool.deallocate(pointer, a);
  EXPECT_EQ(heard().size(), 0U);
  pool.set_limits(kib(256), {});
  ASSERT_EQ(heard().size(), 1U);
  EXPECT_EQ(last_heard(), PressureLevel::kHard);
  progress.pass_all(b);
  EXPECT_EQ(heard().size(), 1U) << "the pool has not asked yet";
  pool.poll();
  ASSERT_EQ(heard().size(), 2U);
  EXPECT_EQ(last_heard(), PressureLevel::kNone);
}

TEST_P(PoolPressure, DependsOnTheLevelBefore) {
  (void)pool.allocate(kib(256), a);
  void* more = pool.allocate(kib(64), a);  // 80%
  ASSERT_EQ(pool.pressure().level, PressureLevel::kSoft);
  pool.deallocate(more, a);
  (void)pool.allocate(kib(16), b);  // 64%, then 68%: left below 65%, entered at 75%
  EXPECT_EQ(pool.pressure().level, PressureLevel::kNone);
  (void)pool.allocate(kib(32), b);  // 76%
  void* last = pool.allocate(kib(4), b);
  EXPECT_EQ(pool.pressure().level, PressureLevel::kSoft);
  pool.deallocate(last, b);       // 76% again
  pool.set_limits(kib(440), {});  // 69%
  EXPECT_EQ(pool.pressure().level, PressureLevel::kSoft) << "it would not be entered here";
  EXPECT_EQ(heard().size(), 3U);
}

TEST_P(PoolPressure, AHandoverIsTold) {
  Pool small(memory(), options_of(kib(16), GetParam()));
  void* pointer = small.allocate(kib(16), a);
  small.deallocate(pointer, a);
  ASSERT_EQ(small.allocate(kib(16), b), pointer);
  ASSERT_EQ(heard().size(), 3U) << "taken, freed and handed over";
  EXPECT_EQ(last_heard(), PressureLevel::kHard);
}

}  // namespace
}  // namespace weir
