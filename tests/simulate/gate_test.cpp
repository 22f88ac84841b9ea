#include "bench/simulate/gate.hpp"

#include <gtest/gtest.h>

#include "bench/simulate/dynamic_limit.hpp"
#include "simulate/run.hpp"

namespace weir::simulate {
namespace {

using std::chrono::milliseconds;

/// A gate, and a device whose batches it hears of.
struct Gated {
  explicit Gated(std::string_view name, Bytes budget = gib(1))
      : gate(make_gate(policy(name), memory, device, budget, 1)) {}

  /// Submits a batch.
  void submit(Time now, Time copy, Time compute) {
    Flight flight;
    flight.shape = {.inputs = mib(1), .copy = copy, .compute = compute};
    device.copy(now, flight);
    device.compute(now, flight);
    gate->closed(0, &flight, now);
  }
  /// The device passes its oldest batch.
  void pass() {
    const Flight flight = device.flights().front();
    device.flights().pop_front();
    gate->passed(flight);
  }
  [[nodiscard]] Verdict ask(Time now) { return gate->ask(0, {}, now); }

  Jitter jitter;
  Memory memory{gib(1024)};
  Device device{jitter, 1};
  std::unique_ptr<Gate> gate;
};

TEST(SimulatedGate, TenTasksAreCopiesThatAreNotCopiedAndComputes) {
  Gated gated("tasks-10");
  // Copies end at 1, 2, … ms, computes at 101, 201, …
  for (int i = 0; i < 6; ++i) gated.submit(Time(0), milliseconds(1), milliseconds(100));
  const Verdict verdict = gated.ask(Time(0));
  EXPECT_EQ(verdict.wait, Verdict::Wait::kTask) << "twelve";
  EXPECT_EQ(verdict.task_end, milliseconds(1)) << "the first copy";
  EXPECT_TRUE(verdict.soft);
  EXPECT_EQ(gated.ask(milliseconds(1)).wait, Verdict::Wait::kTask) << "eleven";
  EXPECT_EQ(gated.ask(milliseconds(2)).wait, Verdict::Wait::kNone) << "ten";
}

TEST(SimulatedGate, TooManyBytesWaitForATaskWhileThereIsOne) {
  Gated gated("tasks-10", mib(4));
  ASSERT_TRUE(gated.memory.take(mib(4)));
  gated.submit(Time(0), milliseconds(1), milliseconds(100));
  EXPECT_EQ(gated.ask(Time(0)).wait, Verdict::Wait::kNone) << "as many as it may";
  ASSERT_TRUE(gated.memory.take(mib(1)));
  const Verdict verdict = gated.ask(milliseconds(1));
  EXPECT_EQ(verdict.wait, Verdict::Wait::kTask);
  EXPECT_EQ(verdict.task_end, milliseconds(101));
  EXPECT_TRUE(verdict.memory);
  gated.pass();
  EXPECT_EQ(gated.ask(milliseconds(101)).wait, Verdict::Wait::kNone) << "nothing to wait for";
}

TEST(SimulatedGate, ByteQueueLimitsHearOfEachBatchAtItsEnd) {
  Gated gated("bql");
  const auto submit = [&] { gated.submit(Time(0), Time(0), milliseconds(1)); };
  submit();
  ASSERT_EQ(gated.ask(Time(0)).wait, Verdict::Wait::kDevice) << "the limit begins at zero";
  gated.pass();
  submit();
  submit();
  ASSERT_EQ(gated.ask(Time(0)).wait, Verdict::Wait::kDevice) << "the limit is one batch";
  // Both end before anybody asks. The queue ran dry after the second one, which was one over the
  // limit, so this grows by one. If both had ended at once, it would grow by two.
  gated.pass();
  gated.pass();
  submit();
  submit();
  EXPECT_EQ(gated.ask(Time(0)).wait, Verdict::Wait::kNone);
  submit();
  EXPECT_EQ(gated.ask(Time(0)).wait, Verdict::Wait::kDevice);
}

TEST(DynamicLimit, GrowsWhenTheQueueRanDry) {
  DynamicLimit limit;
  limit.queue(100);
  EXPECT_TRUE(limit.is_full()) << "it begins at zero: one object over it";
  limit.complete(100, Time(1));
  EXPECT_EQ(limit.limit(), 100U);
  EXPECT_FALSE(limit.is_full());
}

TEST(DynamicLimit, ShrinksByTheLeastSlackOfASecond) {
  DynamicLimit limit;
  limit.queue(1000);
  limit.complete(1000, Time(1));
  ASSERT_EQ(limit.limit(), 1000U);
  // From now on 100 of the 1,000 go at a time, and the queue never runs dry.
  limit.queue(1000);
  for (int i = 0; i < 30; ++i) {
    limit.complete(100, std::chrono::milliseconds(50 * (i + 1)));
    limit.queue(100);
  }
  EXPECT_LT(limit.limit(), 1000U);
  EXPECT_GE(limit.limit(), 200U) << "twice what goes at a time is not slack";
}

TEST(DynamicLimit, AQueueThatIsNeverFullKeepsItsLimit) {
  DynamicLimit limit;
  limit.queue(1000);
  limit.complete(1000, Time(1));
  for (int i = 0; i < 30; ++i) {
    limit.queue(10);
    EXPECT_FALSE(limit.is_full());
    limit.complete(10, std::chrono::milliseconds(50 * (i + 1)));
  }
  EXPECT_EQ(limit.limit(), 1000U);
}

}  // namespace
}  // namespace weir::simulate
