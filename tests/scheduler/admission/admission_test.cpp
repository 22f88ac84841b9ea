// Who is admitted when, under each policy, with a device that the test delays. One long file,
// because every case drives the same rig and reads the same few counts.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <future>
#include <latch>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "scheduler/rig.hpp"
#include "support/log_capture.hpp"
#include "support/message_of.hpp"

namespace weir {
namespace {

using namespace testing;  // NOLINT: the fakes and helpers of the suite
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr RunAhead kOff{.batches = std::nullopt};
constexpr RunAhead batches(std::uint64_t n) {
  return {.batches = n, .time = std::chrono::nanoseconds(-1)};
}

/// A batch whose work waits at the gate; `hint` is its estimate.
void submit_batch(Rig& rig, Bytes hint = {}) {
  const Batch batch = rig->begin_batch("train", {.hint = hint});
  rig->submit("work", {}, nothing());
}

/// A batch that begins and ends on its own thread, which may be blocked.
class Elsewhere {
 public:
  Elsewhere(Rig& rig, const BatchOptions& options, std::string_view kind = "train")
      : rig_(rig), future_(std::async(std::launch::async, [this, options, kind] {
          const Nudge at_the_end(*this);
          (void)rig_->begin_batch(kind, options);
        })) {}

  void get() { future_.get(); }
  /// Checks that it is blocked: the wait after the first `waits` has begun, and it is not done.
  void expect_waiting(std::uint64_t waits = 0) {
    EXPECT_TRUE(rig_.backend.await_waits(waits + 1, &done_)) << "it was admitted";
    EXPECT_FALSE(done_);
  }
  /// Checks that it waits for the device, and continues when the gate opens.
  void expect_held_back(Gate& gate, std::uint64_t waits = 0) {
    expect_waiting(waits);
    gate.open();
    get();
  }

 private:
  struct Nudge {
    explicit Nudge(Elsewhere& of) : elsewhere(of) {}
    ~Nudge() {
      elsewhere.done_ = true;
      elsewhere.rig_.backend.nudge();
    }
    Elsewhere& elsewhere;
  };

  Rig& rig_;
  std::atomic<bool> done_ = false;
  std::future<void> future_;
};

TEST(Admission, ThreadsMayOpenBatchesOfOneKindWhileTheDeviceSettlesThem) {
  constexpr int kEach = 200;
  Rig rig({.run_ahead = batches(2)});
  const auto produce = [&] {
    for (int i = 0; i < kEach; ++i) submit_batch(rig);
  };
  auto other = std::async(std::launch::async, produce);
  produce();
  other.get();
  settle(rig);
  EXPECT_EQ(rig->admission().settled, 2U * kEach);
}

TEST(Admission, RunAheadOfSoManyBatchesHoldsExactlyThatMany) {
  for (const RunAhead& run_ahead : {batches(1), batches(2), batches(3), batches(7), RunAhead{}}) {
    // While the time of no batch is known.
    const auto most = adapts(run_ahead) ? RunAheadLimit::kUnknownBatches : *run_ahead.batches;
    Rig rig({.run_ahead = run_ahead});
    Gate& gate = rig.hold(StreamRole::kCompute);
    for (std::uint64_t i = 0; i < most; ++i) submit_batch(rig);
    EXPECT_EQ(rig.backend.waits(), 0U) << "nobody is held back below the limit";
    Elsewhere held(rig, {.hint = Bytes{}});
    held.expect_held_back(gate);
    EXPECT_EQ(rig->admission().most_submitted, most);
    EXPECT_EQ(rig->admission().soft.count, 1U);
    EXPECT_EQ(rig->admission().budget.count, 0U);
  }
}

TEST(Admission, RunAheadOffHoldsNobodyWhileMemoryLasts) {
  Rig rig({.run_ahead = kOff});
  rig.hold(StreamRole::kCompute);
  for (int i = 0; i < 100; ++i) submit_batch(rig, kib(4));
  EXPECT_EQ(rig.backend.waits(), 0U);
  EXPECT_EQ(rig->admission().submitted, 100U);
}

TEST(Admission, AnUnknownKindIsAdmittedBesideSubmittedBatches) {
  Rig rig({.budget = mib(1), .run_ahead = kOff});
  Gate& gate = rig.hold(StreamRole::kCompute2);
  for (int i = 0; i < 5; ++i) {
    const Batch batch = rig->begin_batch("train");
    const Tensor staged = rig.filled(kib(4), 1, StreamRole::kCopyIn);
    rig->submit("use", {.reads = {staged}, .stream = StreamRole::kCompute2}, nothing());
  }
  EXPECT_EQ(rig.backend.waits(), 0U) << "its memory would wait for submitted work only";
  gate.open();
}

TEST(Admission, AWaitForRoomInAnAllocationIsAStallForTheBudgetToo) {
  Rig rig({.budget = mib(1), .run_ahead = kOff});
  Gate& gate = rig.hold(StreamRole::kCompute2);
  const auto queue = [&] {
    const Batch batch = rig->begin_batch("train");
    const AdmissionStatistics begun = rig->admission();
    const Tensor staged = rig.filled(kib(768), 1, StreamRole::kCopyIn);
    rig->submit("use", {.reads = {staged}, .stream = StreamRole::kCompute2}, nothing());
    return begun;
  };
  (void)queue();
  rig.backend.before_wait = [&](Point) { gate.open(); };
  const AdmissionStatistics begun = queue();
  rig.backend.before_wait = nullptr;
  EXPECT_EQ(begun.open, 1U) << "it begins early, in the room that is left";
  EXPECT_EQ(begun.budget.count, 0U);
  const AdmissionStatistics end = rig->admission();
  EXPECT_EQ(end.budget.count, 1U);
  EXPECT_EQ(end.in_allocations.count, 1U);
  EXPECT_GT(end.budget.total, std::chrono::nanoseconds(0));
  EXPECT_EQ(end.in_allocations.total, end.budget.total);
  EXPECT_EQ(end.stalled, 1U);
  EXPECT_EQ(end.soft.count + end.turn.count, 0U);
}

TEST(Admission, DecidesOnThePoolsPressure) {
  // This memory belongs to no batch: a decision from charges alone would admit.
  Rig rig({.budget = mib(1), .run_ahead = kOff});
  const Tensor live = rig.filled(kib(512), 1);
  Gate& gate = rig.hold(StreamRole::kCompute);
  submit_batch(rig);
  submit_batch(rig, kib(512));
  EXPECT_EQ(rig.backend.waits(), 0U) << "512 KiB beside 512 KiB fit in 1 MiB";
  const Tensor more = rig.filled(kib(4), 1);
  Elsewhere held(rig, {.hint = kib(512)});
  held.expect_held_back(gate);
  EXPECT_EQ(rig->admission().budget.count, 1U);
}

TEST(Admission, CountsWhatAwaitsTheDeviceAsHeld) {
  Rig rig({.budget = mib(1), .run_ahead = kOff});
  Gate& gate = rig.hold(StreamRole::kCompute2);
  {
    const Tensor staged = rig.filled(kib(512), 1, StreamRole::kCopyIn);
    rig->submit("use", {.reads = {staged}, .stream = StreamRole::kCompute2}, nothing());
  }
  {
    const Batch batch = rig->begin_batch("train", {.hint = Bytes{}});
    rig->submit("work", {.stream = StreamRole::kCompute2}, nothing());
  }
  // Without another open batch it would be admitted: that memory is not live.
  Batch open;
  std::thread([&] { open = rig->begin_batch("open", {.hint = Bytes{}}); }).join();
  Elsewhere held(rig, {.hint = kib(513)});
  held.expect_held_back(gate);
  EXPECT_EQ(rig->admission().budget.count, 1U);
}

TEST(Admission, WhatIsCachedIsRoom) {
  Rig rig({.budget = mib(1), .run_ahead = kOff});
  rig.hold(StreamRole::kCompute);
  (void)rig.filled(kib(512), 1);
  submit_batch(rig);
  submit_batch(rig, mib(1));
  EXPECT_EQ(rig.backend.waits(), 0U);
}

TEST(Admission, PromisesToOpenBatchesCount) {
  Rig rig({.budget = mib(1), .run_ahead = kOff});
  Gate& gate = rig.hold(StreamRole::kCompute);
  submit_batch(rig);
  std::optional<Batch> open(rig->begin_batch("train", {.hint = kib(512)}));
  Elsewhere held(rig, {.hint = kib(513)});
  held.expect_waiting();
  gate.open();
  open.reset();
  held.get();
  EXPECT_EQ(rig->admission().forced, 0U);
}

/// Nothing is submitted, and an open batch has a promise of half of the budget.
class BesideAnOpenBatch : public ::testing::Test {
 protected:
  explicit BesideAnOpenBatch(std::chrono::nanoseconds grace = std::chrono::minutes(10))
      : rig({.budget = mib(1), .run_ahead = kOff, .grace = grace}),
        open(rig->begin_batch("first", {.hint = kib(512)})) {}

  /// Checks that a batch of `hint` waits until `make_room` was called.
  void expect_waits_until(const std::function<void()>& make_room, Bytes hint = kib(512)) {
    Elsewhere held(rig, {.hint = hint});
    await_sleeps(1);
    EXPECT_EQ(rig->admission().open, 1U);
    make_room();
    held.get();
    EXPECT_EQ(rig->admission().forced, 0U);
    EXPECT_EQ(rig->admission().budget.count, 1U);
  }
  /// Waits until so many threads have gone to sleep since the beginning.
  void await_sleeps(std::uint64_t count) {
    while (rig->admission().sleeps < count) std::this_thread::yield();
  }

  Rig rig;
  std::optional<Batch> open;
};

TEST_F(BesideAnOpenBatch, WhatDoesNotFitWaitsUntilItCloses) {
  expect_waits_until([&] { open.reset(); }, kib(513));
}

TEST_F(BesideAnOpenBatch, WhatFitsIsAdmittedAtOnce) {
  Elsewhere(rig, {.hint = kib(512)}).get();
  EXPECT_EQ(rig->admission().sleeps, 0U);
}

TEST_F(BesideAnOpenBatch, WhatDoesNotFitIsAdmittedWhenLiveMemoryIsFreed) {
  std::optional<Tensor> live;
  std::thread([&] { live.emplace(rig.filled(kib(256), 1)); }).join();
  expect_waits_until([&] { live.reset(); });
}

TEST_F(BesideAnOpenBatch, WhatDoesNotFitIsAdmittedWhenTheProgramFreesInThePoolItself) {
  const StreamId stream = rig.backend.stream(StreamRole::kCompute);
  void* const own = rig.pool.allocate(kib(256), stream);
  expect_waits_until([&] { rig.pool.deallocate(own, stream); });
}

TEST_F(BesideAnOpenBatch, WhatDoesNotFitIsAdmittedWhenTheBudgetIsRaised) {
  rig.pool.set_limits(kib(768), {});
  expect_waits_until([&] { rig.pool.set_limits(mib(1), {}); });
}

TEST_F(BesideAnOpenBatch, WhatWasFreedAndAwaitsTheDeviceIsLookedForAgain) {
  Gate& gate = rig.hold(StreamRole::kCompute2);
  std::optional<Tensor> staged;
  std::thread([&] {
    staged.emplace(rig.filled(kib(256), 1, StreamRole::kCopyIn));
    rig->submit("use", {.reads = {*staged}, .stream = StreamRole::kCompute2}, nothing());
  }).join();
  Elsewhere held(rig, {.hint = kib(512)});
  await_sleeps(1);
  staged.reset();  // awaits the device, which is at the gate
  await_sleeps(2);
  EXPECT_EQ(rig->admission().open, 1U);
  gate.open();
  held.get();
  EXPECT_EQ(rig->admission().forced, 0U);
}

TEST_F(BesideAnOpenBatch, AWaiterThatIsCancelledLetsTheNextLook) {
  std::stop_source stop;
  Elsewhere first(rig, {.hint = kib(513), .stop = stop.get_token(), .weight = 2});
  await_sleeps(1);
  Elsewhere second(rig, {.hint = kib(512)});
  await_sleeps(2);
  stop.request_stop();
  EXPECT_THROW(first.get(), Cancelled);
  second.get();  // it fits
  open.reset();
  expect_idle(rig);
}

class BesideAnOpenBatchForAShortGrace : public BesideAnOpenBatch {
 protected:
  BesideAnOpenBatchForAShortGrace() : BesideAnOpenBatch(std::chrono::milliseconds(20)) {}
};

TEST_F(BesideAnOpenBatchForAShortGrace, ABatchIsAdmittedByForceCountedAndWarned) {
  const LogCapture log;
  Elsewhere(rig, {.hint = kib(513)}, "second").get();
  EXPECT_EQ(rig->admission().forced, 1U);
  ASSERT_EQ(log.containing("without room").size(), 1U);
  EXPECT_THAT(log.containing("without room").front(),
              AllOf(HasSubstr("'second'"), HasSubstr("513 KiB"), HasSubstr("'first'")));
}

TEST_F(BesideAnOpenBatchForAShortGrace, EachOfALineHasAGraceOfItsOwn) {
  const LogCapture log;
  const auto start = std::chrono::steady_clock::now();
  std::vector<std::future<void>> producers;
  std::latch all_open(3);
  for (int i = 0; i < 3; ++i) {
    producers.push_back(std::async(std::launch::async, [&] {
      const Batch batch = rig->begin_batch("next", {.hint = mib(1)});
      all_open.arrive_and_wait();
    }));
  }
  for (auto& producer : producers) producer.get();
  EXPECT_EQ(rig->admission().forced, 3U);
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(3 * 20));
}

TEST(Admission, TheNextInLineIsWokenWhenTheFirstIsCancelled) {
  Rig rig({.run_ahead = batches(1)});
  Gate& gate = rig.hold(StreamRole::kCompute);
  submit_batch(rig);
  std::stop_source stop;
  Elsewhere first(rig, {.hint = Bytes{}, .stop = stop.get_token()});
  first.expect_waiting();  // the first waits for the device, whoever else joins the line
  Elsewhere second(rig, {.hint = Bytes{}});
  stop.request_stop();
  EXPECT_THAT(message_of<Cancelled>([&] { first.get(); }), HasSubstr("train"));
  second.expect_waiting(1);  // it is first now, and waits for the device itself
  gate.open();
  second.get();
  expect_idle(rig);
}

TEST(Admission, ASleeperInTheMiddleOfTheLineCanBeCancelled) {
  Rig rig({.run_ahead = batches(1)});
  Gate& gate = rig.hold(StreamRole::kCompute);
  submit_batch(rig);
  Elsewhere first(rig, {.hint = Bytes{}});
  first.expect_waiting();
  std::stop_source stop;
  Elsewhere second(rig, {.hint = Bytes{}, .stop = stop.get_token()});
  stop.request_stop();
  EXPECT_THROW(second.get(), Cancelled);
  gate.open();
  first.get();
  expect_idle(rig);
}

TEST(Admission, AStopThatWasRequestedBeforeRefusesAtOnce) {
  Rig rig;
  std::stop_source stop;
  stop.request_stop();
  EXPECT_THROW((void)rig->begin_batch("train", {.stop = stop.get_token()}), Cancelled);
  EXPECT_EQ(rig->admission().open, 0U);
  EXPECT_FALSE(rig->begin_batch("train").joined());
}

TEST(Admission, WarnsOnceWhenLiveMemoryAloneLeavesNoRoom) {
  const LogCapture log;
  Rig rig({.budget = mib(1)});
  for (int i = 0; i < 2; ++i) {
    const Batch batch = rig->begin_batch("train");
    (void)rig.filled(kib(512), 1);
  }
  rig->wait_all();
  EXPECT_TRUE(log.containing("no room").empty());
  const Tensor live = rig.filled(kib(512), 1, StreamRole::kCompute, "weights");
  const Tensor more = rig.filled(kib(4), 1);
  for (int i = 0; i < 3; ++i) {
    const Batch batch = rig->begin_batch("train");
    rig->wait_all();
  }
  ASSERT_EQ(log.containing("no room").size(), 1U);
  EXPECT_THAT(log.containing("no room").front(),
              AllOf(HasSubstr("train"), HasSubstr("weights"), HasSubstr("512 KiB")));
}

TEST(Policies, BarrierWaitsAfterEachBatch) {
  Rig rig({.policy = Policy::kBarrier});
  for (std::uint64_t i = 1; i <= 5; ++i) {
    Tensor tensor;
    {
      const Batch batch = rig->begin_batch("train");
      tensor = rig.filled(kib(4), 1, StreamRole::kCompute2);
    }
    EXPECT_TRUE(rig->reached(rig->written(tensor)));
    EXPECT_EQ(rig->barriers().count, i);
    EXPECT_EQ(rig->admission().submitted, 0U);
  }
}

TEST(Policies, NobodyButThrottledHoldsABatchBack) {
  for (const Policy policy : {Policy::kBackstop, Policy::kUnbounded}) {
    Rig rig({.budget = mib(1), .policy = policy, .run_ahead = batches(1)});
    rig.hold(StreamRole::kCompute);
    for (int i = 0; i < 20; ++i) submit_batch(rig, mib(1));
    EXPECT_EQ(rig.backend.waits(), 0U) << to_string(policy);
    EXPECT_EQ(rig->admission().submitted, 20U);
  }
}

TEST(Policies, UnboundedFailsAtOnceWithAReportThoughWaitingWouldHelp) {
  Rig rig({.budget = mib(1), .policy = Policy::kUnbounded});
  rig.hold(StreamRole::kCompute);
  (void)rig.filled(kib(512), 1);  // cached, behind a point that the device has not passed
  (void)rig.filled(kib(256), 1);
  const Tensor large = rig->empty(shape_of(mib(1)), "large");
  EXPECT_THAT(message_of<OutOfMemory>([&] { rig->submit("op", {.writes = {large}}, fill(1)); }),
              AllOf(HasSubstr("large"), HasSubstr("1 MiB"), HasSubstr("cached"),
                    HasSubstr("not allowed by the policy")));
  EXPECT_EQ(rig.backend.waits(), 0U);
  (void)rig.filled(kib(512), 2);
  EXPECT_EQ(rig.pool.statistics().handovers, 0U);
}

}  // namespace
}  // namespace weir
