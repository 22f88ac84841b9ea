// Admission for a frontend that has no scheduler: a pool, streams and batches.

#include "scheduler/batch_gate.hpp"

#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <future>
#include <thread>
#include <utility>
#include <vector>

#include "allocator/base/error.hpp"
#include "allocator/pool.hpp"
#include "support/manual_progress.hpp"
#include "support/message_of.hpp"
#include "support/options_of.hpp"

namespace weir {
namespace {

using testing::message_of;

struct BatchGateTest : ::testing::Test {
  SimulatedUpstream upstream{mib(64)};
  testing::ManualProgress progress;
  Pool pool{{upstream, progress}, testing::options_of(mib(4))};
  StreamId compute = StreamId::next();
  StreamId copies = StreamId::next();
  BatchGate gate{pool, progress, std::array{compute, copies}, {.run_ahead = {.batches = {}}}};
};

// The frontend frees what a batch used once the device has passed it, and no allocation can wait
// for that. The device passes what is waited for, and nothing else.
TEST_F(BatchGateTest, HoldsBackWhoeverHasFilledTheBudget) {
  std::deque<std::pair<void*, Point>> kept;
  for (int i = 0; i < 12; ++i) {
    GatedBatch batch = gate.begin("train", {.hint = mib(1)});
    for (; !kept.empty() && progress.reached(kept.front().second); kept.pop_front()) {
      (void)gate.deallocate(kept.front().first, copies);
    }
    void* const x = batch.allocate(mib(1), copies, "x");
    (void)progress.enqueue(compute);
    kept.emplace_back(x, progress.record(compute));
  }
  EXPECT_EQ(gate.statistics().most_submitted, 4U) << "a MiB each of 4";
  EXPECT_EQ(gate.statistics().budget.count, 2U);
  for (const auto& [x, point] : kept) (void)gate.deallocate(x, copies);
  progress.pass_all(compute);
  progress.pass_all(copies);
  const AdmissionStatistics end = gate.statistics();
  EXPECT_EQ(end.submitted, 0U);
  EXPECT_EQ(end.charged, Bytes{});
  EXPECT_EQ(end.settled, 12U);
}

TEST_F(BatchGateTest, HoldsBackByTheNumberOfBatchesToo) {
  Pool small{{upstream, progress}, testing::options_of(mib(4))};
  const RunAhead limit{.batches = 2, .time = std::chrono::nanoseconds(0)};
  BatchGate two{small, progress, std::array{compute, copies}, {.run_ahead = limit}};
  for (int i = 0; i < 5; ++i) {
    const GatedBatch batch = two.begin("train", {.hint = kib(1)});
    (void)progress.enqueue(compute);
  }
  EXPECT_EQ(two.statistics().most_submitted, 2U);
  EXPECT_EQ(two.statistics().soft.count, 3U);
}

TEST_F(BatchGateTest, ChargesABatchForItsMemoryUntilThatIsFree) {
  GatedBatch batch = gate.begin("train", {.hint = kib(64)});
  EXPECT_EQ(gate.statistics().charged, kib(64));
  void* const x = batch.allocate(mib(1), compute);
  void* const others = pool.allocate(mib(1), compute);
  EXPECT_EQ(gate.statistics().charged, mib(1));
  EXPECT_EQ(batch.allocate({}, compute), nullptr);
  (void)gate.deallocate(others, compute);
  EXPECT_THROW((void)gate.deallocate(&batch, compute), UsageError);
  EXPECT_EQ(gate.deallocate(x, compute), Freed::kCached);
  EXPECT_THROW((void)gate.deallocate(x, compute), UsageError) << "a second free";
  batch.close();
  batch.close();
  EXPECT_EQ(message_of<UsageError>([&] { (void)batch.allocate(mib(1), compute, "late"); }),
            "late: the batch is closed");
  EXPECT_EQ(gate.statistics().charged, Bytes{});
}

TEST_F(BatchGateTest, LetsAnAllocationWaitForAnotherBatchAndFailsItOnceThereIsNone) {
  GatedBatch older = gate.begin("older", {.hint = kib(4)});
  GatedBatch younger = gate.begin("younger", {.hint = kib(4)});
  void* const first = older.allocate(mib(3), compute);
  std::future<void*> waits =
      std::async(std::launch::async, [&] { return younger.allocate(mib(2), compute); });
  while (gate.statistics().sleeps == 0) std::this_thread::yield();
  (void)gate.deallocate(first, compute);
  void* const second = waits.get();
  EXPECT_NE(second, nullptr);
  older.close();
  EXPECT_THROW((void)younger.allocate(mib(3), compute), OutOfMemory);
  (void)gate.deallocate(second, compute);
}

TEST_F(BatchGateTest, MovesWithItsBatchAndLearnsNothingFromAnAbandonedOne) {
  GatedBatch moved;
  {
    GatedBatch batch = gate.begin("train", {.hint = kib(4)});
    moved = std::move(batch);
  }
  EXPECT_EQ(gate.statistics().open, 1U);
  (void)gate.deallocate(moved.allocate(mib(1), compute), compute);
  moved.abandon();
  EXPECT_EQ(gate.statistics().open, 0U);
  GatedBatch next = gate.begin("train", {.hint = kib(8)});
  EXPECT_EQ(gate.statistics().charged, kib(8)) << "not the MiB of the batch before";
}

TEST_F(BatchGateTest, RefusesWhatCannotBe) {
  Pool other{{upstream, progress}, testing::options_of(mib(4))};
  EXPECT_EQ(message_of<UsageError>([&] { BatchGate(other, progress, {}); }),
            "a batch gate has 1 to 4 streams, not 0");
  EXPECT_THROW(BatchGate(other, progress, std::vector<StreamId>(5, compute)), UsageError);
  EXPECT_THROW(BatchGate(pool, progress, std::array{compute}), UsageError) << "it has a gate";
  EXPECT_THROW((void)gate.begin("train", {.weight = 0}), UsageError);
}

TEST_F(BatchGateTest, AThreadLocalBatchClosesWithItsThread) {
  for (int i = 0; i < 20; ++i) {
    std::thread([&] {
      thread_local GatedBatch of_thread;
      of_thread = gate.begin("train", {.hint = mib(1)});
      (void)gate.deallocate(of_thread.allocate(mib(1), compute), compute);
    }).join();
  }
  EXPECT_EQ(gate.statistics().open, 0U);
}

}  // namespace
}  // namespace weir
