// Batches that other threads work for, and that another thread closes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <future>
#include <latch>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "rig.hpp"
#include "support/message_of.hpp"

namespace weir {
namespace {

using namespace testing;  // NOLINT: the fakes and helpers of the suite
using ::testing::Each;
using ::testing::HasSubstr;

constexpr Bytes kOneTensor = kib(64);

/// A new tensor, written on behalf of `batch`.
Tensor filled_for(Rig& rig, const Batch& batch, Bytes bytes, float value) {
  Tensor tensor = rig->empty(shape_of(bytes));
  rig->submit(batch, "fill", {.writes = {tensor}}, fill(value));
  return tensor;
}

Batch begin_without_a_promise(Rig& rig) { return rig->begin_batch("train", {.hint = Bytes{}}); }

TEST(BatchThreads, WhatAnotherThreadSubmitsIsChargedToTheBatchThatItNames) {
  Rig rig;
  Batch batch = begin_without_a_promise(rig);
  Tensor named;
  Tensor copied;
  Tensor unnamed;
  const std::vector<float> host(kOneTensor.count / sizeof(float), 2);
  std::thread([&] {
    unnamed = rig.filled(kOneTensor, 1);
    EXPECT_EQ(rig->admission().charged, Bytes{}) << "that thread has no batch open";
    named = filled_for(rig, batch, kOneTensor, 1);
    copied = rig->copy_in(batch, host, {host.size()});
  }).join();
  EXPECT_EQ(rig->admission().charged, kOneTensor * 2);
  EXPECT_EQ(rig->read(copied), host);
  batch.close();
  expect_idle(rig);
  EXPECT_EQ(rig->admission().settled, 1U);
}

TEST(BatchThreads, SeveralMaySubmitToOneAtOnce) {
  constexpr std::size_t kThreads = 4;
  constexpr std::size_t kTensors = 50;
  Rig rig;
  Batch batch = begin_without_a_promise(rig);
  std::vector<std::vector<Tensor>> made(kThreads);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t i = 0; i < kTensors; ++i) {
        made[t].push_back(filled_for(rig, batch, kib(4), static_cast<float>(t)));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(rig->admission().charged, kib(4) * (kThreads * kTensors));
  batch.close();
  for (std::size_t t = 0; t < kThreads; ++t) {
    for (const Tensor& tensor : made[t]) EXPECT_THAT(rig->read(tensor), Each(t));
  }
  expect_idle(rig);
}

TEST(BatchThreads, TheThreadsOwnBatchIsNotTheOneThatItNames) {
  Rig rig;
  const Batch outer = begin_without_a_promise(rig);
  std::thread([&] {
    const Batch own = rig->begin_batch("own", {.hint = kOneTensor});
    const Tensor tensor = filled_for(rig, outer, kOneTensor, 1);
    EXPECT_EQ(rig->admission().charged, kOneTensor * 2) << "the promise, and what was charged";
    EXPECT_FALSE(own.joined());
  }).join();
}

TEST(BatchThreads, ThatWhichJoinedAnotherStandsForIt) {
  Rig rig;
  Batch outer = begin_without_a_promise(rig);
  Batch joined = rig->begin_batch("inner");
  Tensor tensor;
  std::thread([&] { tensor = filled_for(rig, joined, kOneTensor, 1); }).join();
  EXPECT_EQ(rig->admission().charged, kOneTensor);
  joined.close();
  EXPECT_EQ(rig->admission().open, 1U);
  EXPECT_THROW((void)filled_for(rig, joined, kOneTensor, 1), UsageError);
  (void)filled_for(rig, outer, kOneTensor, 1);
}

TEST(BatchThreads, MovedToAnotherThreadAndClosedThereItIsNobodysAnyMore) {
  Rig rig;
  Batch batch = begin_without_a_promise(rig);
  std::thread([&, moved = std::move(batch)]() mutable {
    (void)filled_for(rig, moved, kOneTensor, 1);
    moved.close();
  }).join();
  EXPECT_EQ(rig->admission().open, 0U);
  const Tensor outside = rig.filled(kOneTensor, 1);
  EXPECT_EQ(rig->admission().charged, Bytes{}) << "this thread has none open";
  EXPECT_FALSE(begin_without_a_promise(rig).joined());
  expect_idle(rig);
}

TEST(BatchThreads, MovedElsewhereItIsStillTheOneOfTheThreadThatBeganIt) {
  Rig rig;
  Batch batch = begin_without_a_promise(rig);
  std::optional<Batch> elsewhere;
  std::thread([&] { elsewhere.emplace(std::move(batch)); }).join();
  const Tensor tensor = rig.filled(kOneTensor, 1);
  EXPECT_EQ(rig->admission().charged, kOneTensor);
  EXPECT_TRUE(rig->begin_batch("inner").joined());
  elsewhere.reset();
  EXPECT_EQ(rig->admission().open, 0U);
}

thread_local Batch of_thread;

TEST(BatchThreads, AThreadLocalOneClosesWithItsThread) {
  Rig rig;
  Rig other;
  for (int i = 0; i < 20; ++i) {
    std::thread([&] {
      of_thread = {};  // made before anything that begin_batch makes for the thread: ends after it
      (void)begin_without_a_promise(other);
      std::stop_source stop;
      of_thread = rig->begin_batch("train", {.hint = Bytes{}, .stop = stop.get_token()});
      (void)rig.filled(kOneTensor, 1);
    }).join();
  }
  EXPECT_EQ(rig->admission().open, 0U);
  expect_idle(rig);
}

TEST(BatchThreads, AThreadThatEndsByPthreadExitClosesItsOwn) {
  struct Two {
    Rig rig;
    Rig other;
  } two;
  const auto leave = [](void* rigs) -> void* {
    auto& [rig, other] = *static_cast<Two*>(rigs);
    of_thread = rig->begin_batch("train", {.hint = Bytes{}});
    (void)rig.filled(kOneTensor, 1);
    const Batch on_stack = begin_without_a_promise(other);
    (void)other.filled(kOneTensor, 1);
    pthread_exit(nullptr);
  };
  pthread_t thread{};
  ASSERT_EQ(pthread_create(&thread, nullptr, leave, &two), 0);
  ASSERT_EQ(pthread_join(thread, nullptr), 0);
  for (Rig* rig : {&two.rig, &two.other}) {
    EXPECT_EQ((*rig)->admission().open, 0U);
    expect_idle(*rig);
  }
}

TEST(BatchThreads, ThreadLocalsMayBeginAndCloseOnesWhileTheyEnd) {
  Rig rig;
  struct Begins {
    Rig* rig = nullptr;
    ~Begins() {
      const Batch batch = begin_without_a_promise(*rig);
      (void)rig->filled(kOneTensor, 1);
      EXPECT_TRUE((*rig)->begin_batch("inner").joined());
    }
  };
  std::thread([&] {
    thread_local Begins last;
    last.rig = &rig;
    (void)begin_without_a_promise(rig);
  }).join();
  expect_idle(rig);
  EXPECT_EQ(rig->admission().settled, 2U);
}

TEST(BatchThreads, StaticsMayKeepASchedulerAndItsOpenBatchUntilTheProgramEnds) {
  const auto end_with_an_open_batch = [] {
    static Device device = open_device("cpu", {.memory = mib(64)});
    static Pool pool(device.memory(), {});
    static Scheduler scheduler(device, pool, {.budget = mib(16)});
    static Batch batch = scheduler.begin_batch("train");
    std::exit(0);
  };
  EXPECT_EXIT(end_with_an_open_batch(), ::testing::ExitedWithCode(0), "");
}

TEST(BatchThreads, WhatIsClosedOrAnothersIsRefused) {
  Rig rig;
  Rig other;
  const Batch theirs = begin_without_a_promise(other);
  Batch closed = begin_without_a_promise(rig);
  closed.close();
  const Batch none;
  const auto says = [&](const Batch& batch, const char* what) {
    const std::function<void()> call = [&] { rig->submit(batch, "op", {}, nothing()); };
    EXPECT_THAT(message_of<UsageError>(call), HasSubstr(what));
    EXPECT_THROW((void)rig->copy_in(batch, std::vector<float>{1}, {1}), UsageError);
  };
  says(closed, "op: the batch is closed");
  says(none, "op: the batch is closed");
  says(theirs, "op: the batch belongs to another scheduler");
  expect_idle(rig);
}

TEST(BatchThreads, ClosedWhileAnOperationWaitsForItsMemoryTheOperationIsRefused) {
  Rig rig({.budget = kOneTensor});
  Gate& gate = rig.hold(StreamRole::kCompute2);
  {
    const Tensor staged = rig.filled(kOneTensor, 1);
    rig->submit("use", {.reads = {staged}, .stream = StreamRole::kCompute2}, nothing());
  }
  Batch batch = begin_without_a_promise(rig);
  auto late = std::async(std::launch::async, [&] { (void)filled_for(rig, batch, kOneTensor, 2); });
  rig.backend.await_waits(1);
  batch.close();
  gate.open();
  EXPECT_THROW(late.get(), UsageError);
  expect_idle(rig);
  EXPECT_EQ(rig->memory_info().allocated, Bytes{}) << "it gave back what it got";
}

TEST(BatchThreads, ClosedAmongSubmissionsItIsSettledOnceBehindAllThatCameInTime) {
  for (int round = 0; round < 10; ++round) {
    Rig rig({.at_once = round % 2 == 0});
    Batch batch = begin_without_a_promise(rig);
    std::latch start(3);
    std::atomic<int> refused = 0;
    std::vector<std::thread> threads;
    for (const StreamRole role : {StreamRole::kCompute, StreamRole::kCompute2}) {
      threads.emplace_back([&, role] {
        start.arrive_and_wait();
        try {
          for (;;) rig->submit(batch, "op", {.stream = role}, nothing());
        } catch (const UsageError&) {
          ++refused;
        }
      });
    }
    start.arrive_and_wait();
    for (int i = 0; i < round; ++i) std::this_thread::yield();
    batch.close();
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(refused, 2);
    expect_idle(rig);
    EXPECT_EQ(rig->admission().settled, 1U);
  }
}

TEST(BatchThreads, AClosingWaitsForAClosureThatAnotherThreadRuns) {
  Gate gate;
  std::atomic<bool> stands = true;
  Rig rig({.at_once = true});
  rig.backend.before_enqueue = [&] {
    if (stands.exchange(false)) gate.pass();
  };
  Batch batch = begin_without_a_promise(rig);
  std::thread submits([&] { rig->submit(batch, "slow", {}, nothing()); });
  gate.await_arrival();
  std::atomic<bool> closed = false;
  std::thread closes([&] {
    batch.close();
    closed = true;
  });
  give_others_a_chance();
  EXPECT_FALSE(closed) << "the point that it records would be before the closure's work";
  gate.open();
  closes.join();
  submits.join();
  expect_idle(rig);
}

}  // namespace
}  // namespace weir
