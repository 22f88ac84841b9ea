// How schedulers begin and end: with handles that end on other threads meanwhile, and several on
// one pool in turn.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <thread>
#include <utility>
#include <vector>

#include "rig.hpp"
#include "support/log_capture.hpp"
#include "support/message_of.hpp"

namespace weir {
namespace {

using namespace testing;  // NOLINT: the fakes and helpers of the suite
using ::testing::HasSubstr;

/// Ends the scheduler while the free of a tensor waits half-way at a gate.
void end_while_a_handle_ends(Bytes size) {
  const LogCapture log;
  Gate gate;
  std::atomic<std::thread::id> dropper;
  Rig rig;
  Tensor tensor = rig.filled(size, 1);
  // A small tensor's free records a point only for a second stream.
  rig->submit("use", {.reads = {tensor}, .stream = StreamRole::kCompute2}, nothing());
  rig->wait_all();
  rig.backend.before_record = [&] {
    auto me = std::this_thread::get_id();
    if (dropper.compare_exchange_strong(me, {})) gate.pass();
  };
  std::thread drops([&, own = std::move(tensor)]() mutable {
    dropper = std::this_thread::get_id();
    own = {};
  });
  gate.await_arrival();
  std::atomic<bool> ended = false;
  std::thread ends([&] {
    rig.end();
    ended = true;
  });
  give_others_a_chance();
  EXPECT_FALSE(ended) << "a free is still in the middle of it";
  gate.open();
  ends.join();
  drops.join();
  EXPECT_EQ(log.containing(""), std::vector<std::string>{});
  EXPECT_EQ(rig.pool.statistics().allocated.current, Bytes{});
}

TEST(SchedulerEnd, WaitsForAHandleThatEndsOnAnotherThread) { end_while_a_handle_ends(kib(64)); }

TEST(SchedulerEnd, WaitsForAHandleOfASmallTensorThatEndsOnAnotherThread) {
  end_while_a_handle_ends({4});
}

/// For the sanitizers: handles end before, during and after the end of their scheduler.
TEST(SchedulerEnd, HandlesThatEndOnOtherThreadsMeanwhileAreFreedOnce) {
  constexpr std::size_t kThreads = 3;
  constexpr std::size_t kEach = 40;
  const LogCapture log;
  for (int round = 0; round < 60; ++round) {
    Rig rig;
    std::vector<std::vector<Tensor>> handles(kThreads);
    for (std::vector<Tensor>& own : handles) {
      for (std::size_t i = 0; i < kEach; ++i) {
        own.push_back(rig.filled(i % 2 == 0 ? Bytes{4} : kib(4), 1, kAllRoles.at(i % 4)));
      }
    }
    std::latch start(kThreads + 1);
    std::vector<std::thread> threads;
    for (std::vector<Tensor>& own : handles) {
      threads.emplace_back([&start, &own] {
        start.arrive_and_wait();
        while (!own.empty()) own.pop_back();
      });
    }
    start.arrive_and_wait();
    for (int i = 0; i < round * 4; ++i) std::this_thread::yield();
    rig.end();
    EXPECT_EQ(rig.pool.statistics().allocated.current, Bytes{}) << "round " << round;
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_EQ(log.containing(""), std::vector<std::string>{});
}

TEST(SchedulerLimits, OfAPoolAreOneSchedulersAtATime) {
  Rig rig({.budget = mib(1), .policy = Policy::kUnbounded});
  EXPECT_THAT(message_of<UsageError>([&] { const Scheduler second(rig.device, rig.pool); }),
              HasSubstr("the pool already serves a scheduler"));
  EXPECT_EQ(rig.pool.budget(), mib(1));
  EXPECT_THROW((void)rig.filled(mib(2), 1), OutOfMemory) << "its limits are as they were";
  rig.end();
  Scheduler next(rig.device, rig.pool, {.budget = mib(2)});
  EXPECT_EQ(rig.pool.budget(), mib(2));
}

TEST(SchedulerLimits, ThatAreRefusedLeaveThePoolFree) {
  Rig rig;
  rig.end();
  EXPECT_THROW(Scheduler(rig.device, rig.pool, {.budget = gib(1)}), UsageError);
  EXPECT_NO_THROW(Scheduler(rig.device, rig.pool));
}

}  // namespace
}  // namespace weir
