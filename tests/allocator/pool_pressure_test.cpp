// How a pool tells its pressure.

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "allocator/base/error.hpp"
#include "allocator/pool_fixture.hpp"
#include "support/gate.hpp"

namespace weir {
namespace {

using testing::Gate;
using testing::give_others_a_chance;
using testing::options_of;

class Listener final : public PressureObserver {
 public:
  explicit Listener(const Pool& pool) : pool_(pool) {}
  void on_pressure(const Pressure& pressure) noexcept override {
    EXPECT_EQ(held_lock_ranks(), 0U) << "told under a lock";
    EXPECT_GE(pool_.pressure().sequence, pressure.sequence) << "an observer may read the pool";
    heard.push_back(pressure);
  }
  std::vector<Pressure> heard;

 private:
  const Pool& pool_;
};

struct PoolPressure : testing::PoolFixture, ::testing::WithParamInterface<PoolKind> {
  Pool pool{memory(), options_of(kib(400), GetParam())};
  Listener listener{pool};
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

TEST_P(PoolPressure, IsToldOncePerChangeAndNeverUnderTheLock) {
  pool.observe(listener);
  void* half = pool.allocate(kib(256), a);
  EXPECT_EQ(listener.heard.size(), 0U);
  void* more = pool.allocate(kib(64), a);  // 80%
  ASSERT_EQ(listener.heard.size(), 1U);
  EXPECT_EQ(listener.heard.back().level, PressureLevel::kSoft);
  EXPECT_EQ(listener.heard.back().held, kib(320));
  EXPECT_EQ(listener.heard.back().budget, kib(400));
  void* little = pool.allocate(kib(4), a);
  EXPECT_EQ(listener.heard.size(), 1U);
  void* rest = pool.allocate(kib(64), a);  // 97%
  ASSERT_EQ(listener.heard.size(), 2U);
  EXPECT_EQ(listener.heard.back().level, PressureLevel::kHard);
  pool.deallocate(half, a);  // 33%
  ASSERT_EQ(listener.heard.size(), 3U);
  EXPECT_EQ(listener.heard.back().level, PressureLevel::kNone);
  EXPECT_EQ(pool.pressure().level, PressureLevel::kNone);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(listener.heard.at(i).sequence, i + 1);
  for (void* pointer : {more, little, rest}) pool.deallocate(pointer, a);
  EXPECT_EQ(listener.heard.size(), 3U);
  pool.unobserve(listener);
}

TEST_P(PoolPressure, FollowsTheDeviceAndTheBudget) {
  pool.observe(listener);
  void* pointer = pool.allocate(kib(256), a);
  pool.record_use(pointer, b);
  pool.deallocate(pointer, a);
  EXPECT_EQ(listener.heard.size(), 0U);
  pool.set_limits(kib(256), {});
  ASSERT_EQ(listener.heard.size(), 1U);
  EXPECT_EQ(listener.heard.back().level, PressureLevel::kHard);
  progress.pass_all(b);
  EXPECT_EQ(listener.heard.size(), 1U) << "the pool has not asked yet";
  pool.poll();
  ASSERT_EQ(listener.heard.size(), 2U);
  EXPECT_EQ(listener.heard.back().level, PressureLevel::kNone);
  pool.unobserve(listener);
}

TEST_P(PoolPressure, DependsOnTheLevelBefore) {
  (void)pool.allocate(kib(256), a);
  void* more = pool.allocate(kib(64), a);  // 80%
  ASSERT_EQ(pool.pressure().level, PressureLevel::kSoft);
  pool.observe(listener);
  pool.deallocate(more, a);
  (void)pool.allocate(kib(16), b);  // 64%, then 68%: left below 65%, entered at 75%
  EXPECT_EQ(pool.pressure().level, PressureLevel::kNone);
  (void)pool.allocate(kib(32), b);  // 76%
  void* last = pool.allocate(kib(4), b);
  EXPECT_EQ(pool.pressure().level, PressureLevel::kSoft);
  pool.deallocate(last, b);       // 76% again
  pool.set_limits(kib(440), {});  // 69%
  EXPECT_EQ(pool.pressure().level, PressureLevel::kSoft) << "it would not be entered here";
  EXPECT_EQ(listener.heard.size(), 2U);
  pool.unobserve(listener);
}

TEST_P(PoolPressure, AHandoverIsTold) {
  Pool small(memory(), options_of(kib(16), GetParam()));
  void* pointer = small.allocate(kib(16), a);
  small.deallocate(pointer, a);
  Listener hears(small);
  small.observe(hears);
  ASSERT_EQ(small.allocate(kib(16), b), pointer);
  ASSERT_EQ(hears.heard.size(), 1U);
  EXPECT_EQ(hears.heard.back().level, PressureLevel::kHard);
  small.unobserve(hears);
}

/// Who is told, which is the same for every kind.
struct PressureObservers : testing::PoolFixture {
  Pool pool{memory(), options_of(kib(400))};
  Listener listener{pool};
};

TEST_F(PressureObservers, AreNotToldWhatComesAfterTheyLeft) {
  pool.observe(listener);
  pool.unobserve(listener);
  (void)pool.allocate(kib(256), a);
  (void)pool.allocate(kib(128), a);
  EXPECT_EQ(pool.pressure().level, PressureLevel::kHard);
  EXPECT_EQ(listener.heard.size(), 0U);
}

TEST_F(PressureObservers, AreSoManyAndNoMore) {
  std::vector<std::unique_ptr<Listener>> listeners;
  for (std::size_t i = 0; i < Pool::kMostObservers; ++i) {
    listeners.push_back(std::make_unique<Listener>(pool));
    pool.observe(*listeners.back());
  }
  EXPECT_THROW(pool.observe(listener), UsageError);
  (void)pool.allocate(kib(256), a);
  (void)pool.allocate(kib(128), a);
  for (const auto& each : listeners) EXPECT_EQ(each->heard.size(), 1U);
  pool.unobserve(*listeners.front());
  EXPECT_NO_THROW(pool.observe(listener));
}

/// Stays in its call until the test lets it go.
class SlowListener final : public PressureObserver {
 public:
  void on_pressure(const Pressure&) noexcept override {
    gate.pass();
    done = true;
  }
  Gate gate;
  bool done = false;  // plain on purpose: unobserve must order it before its return
};

TEST_F(PressureObservers, HaveLeftWhenNoCallIsUnderWay) {
  SlowListener slow;
  pool.observe(slow);
  std::thread allocating([&] {
    (void)pool.allocate(kib(256), a);
    (void)pool.allocate(kib(128), a);
  });
  slow.gate.await_arrival();
  std::promise<void> about_to_leave;
  std::thread leaving([&] {
    about_to_leave.set_value();
    pool.unobserve(slow);
    EXPECT_TRUE(slow.done);
  });
  about_to_leave.get_future().wait();
  give_others_a_chance();
  slow.gate.open();
  leaving.join();
  allocating.join();
}

}  // namespace
}  // namespace weir
