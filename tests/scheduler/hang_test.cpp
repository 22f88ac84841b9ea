// Schedules that hang if somebody waits for what only another frontend would do. Each test shows by
// its end that none does: the only watchdog is ctest's limit. One long file, because the cases are
// variations of two batches that need each other's memory.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <deque>
#include <future>
#include <latch>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "rig.hpp"

namespace weir {
namespace {

using namespace testing;  // NOLINT: the fakes and helpers of the suite
using ::testing::Each;

/// The queue between a data loader and a trainer.
class HostQueue {
 public:
  void push(Tensor tensor) {
    const std::lock_guard lock(mutex_);
    tensors_.push_back(std::move(tensor));
    changed_.notify_all();
  }
  [[nodiscard]] Tensor pop() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !tensors_.empty(); });
    Tensor tensor = std::move(tensors_.front());
    tensors_.pop_front();
    return tensor;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Tensor> tensors_;
};

TEST(Hang, AnOpenBatchThatWaitsForAnotherProducersBatch) {
  for (const Policy policy : kAllPolicies) {
    // Room for everything in the queue: that is live, and no wait would free it. One batch of an
    // unknown kind is promised all, and the other must be admitted beside it.
    Rig rig({.budget = mib(4),
             .policy = policy,
             .run_ahead = {.batches = 1, .time = std::chrono::nanoseconds(0)},
             .grace = std::chrono::milliseconds(5)});
    HostQueue queue;
    auto loader = std::async(std::launch::async, [&] {
      for (int i = 0; i < 30; ++i) {
        Tensor tensor;
        {
          const Batch batch = rig->begin_batch("load");
          tensor = rig.filled(kib(64), static_cast<float>(i), StreamRole::kCopyIn);
        }
        queue.push(std::move(tensor));
      }
    });
    for (int i = 0; i < 30; ++i) {
      const Batch batch = rig->begin_batch("train");
      const Tensor input = queue.pop();
      const Tensor out = rig->empty(shape_of(kib(64)));
      rig->submit("add", {.reads = {input}, .writes = {out}}, add(1));
      EXPECT_THAT(rig->read(out), Each(static_cast<float>(i + 1)));
    }
    loader.get();
    expect_idle(rig);
  }
}

TEST(Hang, AnOpenBatchThatPromisedItselfEverythingAndWaitsForAnotherProducersBatch) {
  Rig rig({.budget = mib(1), .grace = std::chrono::milliseconds(5)});
  Gate& gate = rig.hold(StreamRole::kCompute);
  {
    const Batch submitted = rig->begin_batch("train", {.hint = Bytes{}});
    rig->submit("work", {}, nothing());
  }
  const Batch greedy = rig->begin_batch("greedy", {.hint = mib(1)});
  HostQueue queue;
  auto loader = std::async(std::launch::async, [&] {
    const Batch batch = rig->begin_batch("load", {.hint = mib(1)});
    queue.push(rig.filled(kib(64), 1, StreamRole::kCopyIn));
  });
  rig.backend.await_waits(1);  // the loader waits for the device first
  gate.open();
  EXPECT_THAT(rig->read(queue.pop()), Each(1));
  loader.get();
  EXPECT_EQ(rig->admission().forced, 1U) << "and then for the greedy batch, but not for ever";
}

TEST(Hang, NestedBatchesWhileNothingMoreIsAdmitted) {
  Rig rig({.budget = mib(1), .run_ahead = {.batches = 1, .time = std::chrono::nanoseconds(-1)}});
  const Batch outer = rig->begin_batch("train", {.hint = kib(64)});
  rig.hold(StreamRole::kCompute);
  std::thread([&] {  // admitted while nothing is submitted, and submits continuously
    const Batch other = rig->begin_batch("other", {.hint = kib(64)});
    rig->submit("work", {}, nothing());
  })
      .join();
  for (int depth = 0; depth < 5; ++depth) {
    const Batch inner = rig->begin_batch("inner", {.hint = mib(64)});
    EXPECT_TRUE(inner.joined()) << "admitted with the batch that it joins";
  }
  EXPECT_EQ(rig.backend.waits(), 0U);
}

TEST(Hang, TheLastProducerLeavingWhileOthersSleep) {
  Rig rig({.run_ahead = {.batches = 1, .time = std::chrono::nanoseconds(-1)}});
  for (int round = 0; round < 20; ++round) {
    Gate& gate = rig.hold(StreamRole::kCompute);
    {
      const Batch batch = rig->begin_batch("train", {.hint = Bytes{}});
      rig->submit("work", {}, nothing());
    }
    const std::uint64_t waits = rig.backend.waits();
    std::stop_source stop;
    std::vector<std::future<bool>> producers;
    for (int i = 0; i < 4; ++i) {
      producers.push_back(std::async(std::launch::async, [&rig, &stop, i] {
        try {
          // One is admitted, two give up at some point of the line, one throws in its batch.
          const Batch batch = rig->begin_batch(
              "train", {.hint = Bytes{}, .stop = i < 2 ? stop.get_token() : std::stop_token()});
          if (i == 3) throw Broken("leaves at once");
          return true;
        } catch (const std::exception&) {
          return false;
        }
      }));
    }
    rig.backend.await_waits(waits + 1);
    stop.request_stop();
    gate.open();
    for (auto& producer : producers) (void)producer.get();
    expect_idle(rig);
  }
}

TEST(Hang, AnOperationThatWaitsForMemoryWhileAReaderOfItsOutputIsSubmitted) {
  Rig rig({.budget = mib(1)});
  Gate& gate = rig.hold(StreamRole::kCompute);
  const Tensor shared = rig.filled(kib(256), 1, StreamRole::kCopyIn);
  (void)rig.filled(kib(512), 1);  // cached behind the gate
  const Tensor fresh = rig->empty(shape_of(kib(768)));
  auto writer = std::async(std::launch::async, [&rig, own = shared, out = fresh] {
    // 768 KiB are a block of 1 MiB, which can never fit, but cached memory must be awaited first.
    EXPECT_THROW(rig->submit("both", {.reads = {own}, .writes = {own, out}}, add(1)), OutOfMemory);
  });
  rig.backend.await_waits(1);
  // The waiting operation is invisible and holds no lock: others read what it would write.
  EXPECT_THAT(rig->read(shared), Each(1));
  EXPECT_THROW((void)rig->read(fresh), UsageError);
  EXPECT_GE(rig->memory_info().allocated, kib(256));
  gate.open();
  writer.get();
  EXPECT_THAT(rig->read(shared), Each(1)) << "the operation that failed changed nothing";
  expect_idle(rig);
}

TEST(Hang, AnOperationThatWaitsForMemoryGetsItWhenTheDeviceComesRound) {
  Rig rig({.budget = mib(1)});
  Gate& gate = rig.hold(StreamRole::kCompute);
  (void)rig.filled(kib(512), 1);
  (void)rig.filled(kib(256), 1);
  const Tensor out = rig->empty(shape_of(mib(1)));
  auto writer = std::async(std::launch::async,
                           [&rig, own = out] { rig->submit("write", {.writes = {own}}, fill(6)); });
  rig.backend.await_waits(1);
  auto reader = std::async(std::launch::async, [&rig, own = out] {
    for (;;) {
      try {
        return rig->read(own);
      } catch (const UsageError&) {
        std::this_thread::yield();  // not written yet
      }
    }
  });
  gate.open();
  writer.get();
  EXPECT_THAT(reader.get(), Each(6));
}

/// An older batch of this thread and a younger one of another, which fill the budget together.
class TwoOpenBatches : public ::testing::Test {
 protected:
  explicit TwoOpenBatches(std::chrono::nanoseconds grace = std::chrono::minutes(10))
      : rig({.budget = mib(1), .grace = grace}) {}
  void TearDown() override {
    end_older();
    expect_idle(rig);
  }
  void open_older() {
    older.emplace(rig->begin_batch("older", {.hint = Bytes{}}));
    mine.emplace(rig.filled(kib(512), 1));
  }
  void end_older() {
    mine.reset();
    older.reset();
  }
  /// Opens the younger batch on another thread and requests more than is left.
  std::future<bool> younger_runs_out() {
    return std::async(std::launch::async, [this] {
      const Batch batch = rig->begin_batch("younger", {.hint = Bytes{}});
      const Tensor own = rig.filled(kib(256), 2);
      opened.count_down();
      try {
        EXPECT_THAT(rig->read(rig.filled(kib(512), 3)), Each(3));
        return true;
      } catch (const OutOfMemory&) {
        return false;
      }
    });
  }

  std::latch opened{1};
  Rig rig;
  std::optional<Batch> older;
  std::optional<Tensor> mine;
};

TEST_F(TwoOpenBatches, WhenBothAreBlockedTheYoungerFailsAtOnceAndTheOlderGoesOn) {
  open_older();
  auto younger = younger_runs_out();
  opened.wait();
  EXPECT_THAT(rig->read(rig.filled(kib(512), 4)), Each(4)) << "with what the younger gives back";
  EXPECT_FALSE(younger.get());
}

TEST_F(TwoOpenBatches, TheOlderWaitsForTheYoungerWhileThatRuns) {
  open_older();
  std::latch holds(1);
  auto younger = std::async(std::launch::async, [&] {
    const Batch batch = rig->begin_batch("younger", {.hint = Bytes{}});
    const Tensor own = rig.filled(kib(512), 2);
    holds.count_down();
    while (rig->admission().sleeps == 0) std::this_thread::yield();
  });
  holds.wait();
  EXPECT_THAT(rig->read(rig.filled(kib(512), 3)), Each(3));
  younger.get();
}

TEST_F(TwoOpenBatches, WhenTheLastThatRanClosesTheYoungestOfTheBlockedFailsAtOnce) {
  open_older();
  std::latch begun(1);
  auto runs = std::async(std::launch::async, [&] {
    const Batch batch = rig->begin_batch("runs", {.hint = Bytes{}});
    begun.count_down();
    while (rig->admission().sleeps < 2) std::this_thread::yield();
  });
  begun.wait();
  auto younger = younger_runs_out();
  opened.wait();
  EXPECT_THAT(rig->read(rig.filled(kib(512), 4)), Each(4));
  EXPECT_FALSE(younger.get());
  runs.get();
}

TEST_F(TwoOpenBatches, AnAllocationGetsWhatTheProgramFreesInThePoolItself) {
  rig.pool.set_limits(kib(1536), {});
  const StreamId stream = rig.backend.stream(StreamRole::kCompute);
  void* const own = rig.pool.allocate(kib(512), stream);
  open_older();
  auto younger = younger_runs_out();
  opened.wait();
  while (rig->admission().sleeps == 0) std::this_thread::yield();
  rig.pool.deallocate(own, stream);
  EXPECT_TRUE(younger.get());
}

TEST_F(TwoOpenBatches, TheYoungerGetsWhatTheOlderGivesBackWhenItCloses) {
  open_older();
  auto younger = younger_runs_out();
  opened.wait();
  end_older();
  EXPECT_TRUE(younger.get());
}

TEST_F(TwoOpenBatches, WhatIsLargerThanTheBudgetFailsAtOnceBesideAnOpenBatch) {
  open_older();
  std::thread([&] {
    const Batch batch = rig->begin_batch("younger", {.hint = Bytes{}});
    EXPECT_THROW((void)rig.filled(mib(2), 1), OutOfMemory);
  }).join();
}

class TwoOpenBatchesForAShortGrace : public TwoOpenBatches {
 protected:
  TwoOpenBatchesForAShortGrace() : TwoOpenBatches(std::chrono::milliseconds(5)) {}
};

TEST_F(TwoOpenBatchesForAShortGrace, TheYoungerWaitsAtMostThatAndIsCounted) {
  open_older();
  const auto start = std::chrono::steady_clock::now();
  auto younger = younger_runs_out();
  EXPECT_FALSE(younger.get()) << "the older one is still open";
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(5));
  // The grace begins before the sleep that is counted, so the count may be shorter.
  EXPECT_GE(rig->admission().budget.count, 1U);
  EXPECT_GT(rig->admission().budget.total, std::chrono::nanoseconds(0));
}

TEST_F(TwoOpenBatches, TheYoungerIsServedFromWhatTheOlderFreesThoughItStaysOpen) {
  open_older();
  auto younger = younger_runs_out();
  opened.wait();
  mine.reset();
  EXPECT_TRUE(younger.get()) << "and long before the grace ends";
}

TEST_F(TwoOpenBatches, WorkOutsideBatchesWaitsForAnyOpenOneLikeTheYoungest) {
  open_older();
  std::latch started(1);
  auto outside = std::async(std::launch::async, [&] {
    started.count_down();
    EXPECT_THAT(rig->read(rig.filled(mib(1), 4)), Each(4));
  });
  started.wait();
  end_older();
  outside.get();
}

TEST(Hang, ABlockGivenBackAndABatchClosedBetweenTwoLooksIsNotMissed) {
  // The younger finds no memory; the older frees and closes; the younger finds nobody to wait for.
  Rig rig({.budget = mib(1), .grace = std::chrono::minutes(10)});
  for (int round = 0; round < 300; ++round) {
    std::latch both(2);
    // Unknown kinds: both are admitted, though they need all the memory.
    const std::string number = std::to_string(round);
    std::optional<Batch> older(rig->begin_batch("older " + number, {.hint = Bytes{}}));
    std::optional<Tensor> all(rig.filled(mib(1), 1));
    auto younger = std::async(std::launch::async, [&] {
      const Batch batch = rig->begin_batch("younger " + number, {.hint = Bytes{}});
      both.arrive_and_wait();
      (void)rig.filled(mib(1), 2, StreamRole::kCompute2);
    });
    both.arrive_and_wait();
    all.reset();
    older.reset();
    EXPECT_NO_THROW(younger.get()) << "round " << round;
    settle(rig);
  }
}

TEST(Hang, ProducersThatComeAndGoWhileThePoolIsFull) {
  Rig rig({.budget = kib(512)});
  std::vector<std::future<void>> producers;
  for (int p = 0; p < 4; ++p) {
    producers.push_back(std::async(std::launch::async, [&rig, p] {
      for (int i = 0; i < 40; ++i) {
        std::thread([&rig, p, i] {  // a new thread each time: a new producer
          const Batch batch = rig->begin_batch("step");
          const StreamRole role = kAllRoles.at(static_cast<std::size_t>(p + i) % kStreamRoles);
          const Tensor a = rig.filled(kib(64), 1, role);
          const Tensor b = rig->empty(shape_of(kib(64)));
          rig->submit("add", {.reads = {a}, .writes = {b}}, add(1));
        })
            .join();
      }
    }));
  }
  for (auto& producer : producers) producer.get();
  expect_idle(rig);
}

}  // namespace
}  // namespace weir
