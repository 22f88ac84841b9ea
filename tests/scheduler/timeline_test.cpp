// What a scheduler reports to a recorder.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "rig.hpp"
#include "support/told_timeline.hpp"

namespace weir {
namespace {

using namespace testing;  // NOLINT: the fakes and helpers of the suite
using Kind = TimelineKind;

std::string here(int line) { return std::string(__FILE__) + ":" + std::to_string(line); }

TEST(SchedulerTimeline, AnOperationIsFollowedFromItsSubmissionToItsStream) {
  Rig rig;
  const ToldTimeline told;
  int line = 0;
  {
    const Batch batch = rig->begin_batch("train");
    const Tensor x = rig->empty({4}, "x");
    line = __LINE__ + 1;
    rig->submit("dense1", {.writes = {x}}, fill(1));
  }
  rig->wait_all();
  const auto submitted = told.of(Kind::kSubmit);
  const auto executed = told.of(Kind::kExecute);
  ASSERT_EQ(submitted.size(), 1U);
  ASSERT_EQ(executed.size(), 1U);
  EXPECT_NE(submitted[0].id, 0U);
  EXPECT_EQ(executed[0].id, submitted[0].id);
  EXPECT_EQ(executed[0].stream, submitted[0].stream);
  EXPECT_EQ(executed[0].bytes, 16U);
  const auto admitted = told.of(Kind::kAdmit);
  ASSERT_EQ(admitted.size(), 1U);
  for (const auto& record : {submitted[0], executed[0]}) {
    EXPECT_EQ(told.text(record.name), "dense1");
    EXPECT_EQ(told.text(record.site), here(line));
    EXPECT_EQ(record.batch, admitted[0].batch);
  }
  const auto allocated = told.of(Kind::kAllocate);
  ASSERT_FALSE(allocated.empty());
  EXPECT_EQ(allocated.back().batch, admitted[0].batch);
  EXPECT_EQ(told.text(allocated.back().site), here(line));
}

TEST(SchedulerTimeline, AnAdmissionNamesThePressureThatItWasDecidedOn) {
  Rig rig;
  const Tensor live = rig.filled(kib(64), 1);
  rig->wait_all();
  const ToldTimeline told;
  const Pressure before = rig.pool.pressure();
  for (int i = 0; i < 2; ++i) const Batch batch = rig->begin_batch("train");
  const Tensor more = rig.filled(kib(64), 1);
  const Pressure after = rig.pool.pressure();
  EXPECT_GT(after.number, before.number);
  EXPECT_GT(before.held, Bytes{});
  { const Batch batch = rig->begin_batch("train"); }
  const auto admitted = told.of(Kind::kAdmit);
  ASSERT_EQ(admitted.size(), 3U);
  for (const std::size_t i : {0U, 1U, 2U}) {
    const Pressure& decided_on = i < 2 ? before : after;
    EXPECT_EQ(admitted[i].id, decided_on.number);
    EXPECT_EQ(admitted[i].allocated, (decided_on.held - decided_on.awaiting).count);
    EXPECT_EQ(admitted[i].awaiting, decided_on.awaiting.count);
    EXPECT_EQ(admitted[i].cached, decided_on.cached.count);
  }
}

TEST(SchedulerTimeline, AnAdmissionByForceIsToldAsOne) {
  const ToldTimeline told;
  Rig rig({.budget = kib(256), .grace = std::chrono::milliseconds(1)});
  const Batch open = rig->begin_batch("open", {.hint = kib(256)});
  const Tensor held = rig.filled(kib(128), 1);
  std::thread([&] { (void)rig->begin_batch("forced", {.hint = kib(128)}); }).join();
  const auto admitted = told.of(Kind::kAdmit);
  ASSERT_EQ(admitted.size(), 2U);
  EXPECT_EQ(admitted[0].detail, static_cast<int>(TimelineAdmission::kAdmitted));
  EXPECT_EQ(admitted[1].detail, static_cast<int>(TimelineAdmission::kForced));
}

TEST(SchedulerTimeline, ABatchIsAdmittedClosedAndSettledOnce) {
  Rig rig;
  const ToldTimeline told;
  const int line = __LINE__ + 2;
  for (int i = 0; i < 3; ++i) {
    const Batch batch = rig->begin_batch("train");
    (void)rig.filled(kib(8), 1);
  }
  rig->wait_all();
  std::vector<std::uint32_t> numbers;
  for (const Kind kind : {Kind::kAdmit, Kind::kClose, Kind::kSettle}) {
    const auto records = told.of(kind);
    ASSERT_EQ(records.size(), 3U);
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(told.text(records[i].name), "train");
      EXPECT_EQ(told.text(records[i].site), here(line));
      if (kind == Kind::kAdmit) numbers.push_back(records[i].batch);
      EXPECT_EQ(records[i].batch, numbers.at(i));
      if (kind != Kind::kAdmit) {
        EXPECT_EQ(records[i].bytes, kib(8).count) << "its peak";
      }
    }
  }
  EXPECT_EQ(numbers[1], numbers[0] + 1);
  EXPECT_EQ(numbers[2], numbers[1] + 1);
  EXPECT_EQ(told.batches(), numbers) << "told before each of them begins";
}

TEST(SchedulerTimeline, EveryBarrierHasItsCallSite) {
  Rig rig;
  const Tensor x = rig.filled(kib(4), 1);
  const ToldTimeline told;
  const int line = __LINE__ + 1;
  rig->wait(x);
  (void)rig->read(x);
  rig->wait_all();
  const auto barriers = told.of(Kind::kBarrier);
  ASSERT_EQ(barriers.size(), 3U);
  const std::vector<std::string> calls{"wait", "read", "wait_all"};
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(told.text(barriers[i].name), calls[i]);
    EXPECT_EQ(told.text(barriers[i].site), here(line + static_cast<int>(i)));
    EXPECT_LT(barriers[i].begin, barriers[i].end);
  }
}

TEST(SchedulerTimeline, HostMemoryOfACopyHasTheCallSiteAndTheBatchOfItsCall) {
  Rig rig;
  rig.backend.stages_copies = true;
  const ToldTimeline told;
  const std::vector<float> host(1024);
  const int line = __LINE__ + 3;
  {
    const Batch batch = rig->begin_batch("train");
    const Tensor x = rig->copy_in(host, {host.size()}, "x");
    (void)rig->read(x);
  }
  rig->wait_all();
  const auto admitted = told.of(Kind::kAdmit);
  ASSERT_EQ(admitted.size(), 1U);
  std::vector<std::string> labels;
  for (const auto& record : told.of(Kind::kAllocate)) {
    const std::string label = told.text(record.name);
    if (label == "x") continue;  // the tensor itself
    EXPECT_EQ(told.text(record.site), here(line + static_cast<int>(labels.size()))) << label;
    EXPECT_EQ(record.batch, admitted[0].batch) << label;
    labels.push_back(label);
  }
  EXPECT_EQ(labels, (std::vector<std::string>{"copy_in", "read"}));
}

TEST(SchedulerTimeline, TheBarrierOfItsPolicyIsTheBatchs) {
  Rig rig({.policy = Policy::kBarrier});
  const ToldTimeline told;
  const int line = __LINE__ + 1;
  { const Batch batch = rig->begin_batch("train"); }
  const auto barriers = told.of(Kind::kBarrier);
  ASSERT_EQ(barriers.size(), 1U);
  EXPECT_EQ(told.text(barriers[0].site), here(line));
  EXPECT_EQ(barriers[0].batch, told.of(Kind::kAdmit).at(0).batch);
}

TEST(SchedulerTimeline, AStallSaysWhatItWaitedForAndIsCountedOnce) {
  Rig rig({.run_ahead = {.batches = 1, .time = std::chrono::nanoseconds(0)}});
  const ToldTimeline told;
  Gate& gate = rig.hold(StreamRole::kCompute);
  rig.backend.before_wait = [&gate](Point) { gate.open(); };  // nobody waits before it stalls
  for (std::uint64_t i = 0; i < RunAheadLimit::kFirstBatches; ++i) {
    const Batch batch = rig->begin_batch("train");
    (void)rig.filled(kib(4), 1);
  }
  rig->wait_all();
  rig.backend.before_wait = nullptr;
  const AdmissionStatistics counted = rig->admission();
  std::uint64_t soft = 0;
  std::uint64_t hard = 0;
  for (const auto& record : told.of(Kind::kStall)) {
    EXPECT_EQ(told.text(record.name), "train");
    EXPECT_LT(record.begin, record.end);
    EXPECT_NE(record.batch, 0U);
    ++(record.detail == static_cast<int>(TimelineStall::kRunAhead) ? soft : hard);
  }
  EXPECT_EQ(soft, counted.soft.count);
  EXPECT_EQ(hard, counted.budget.count);
  EXPECT_GT(soft + hard, 0U);
}

TEST(SchedulerTimeline, AStallForTwoCausesCountsUnderEachForItsTime) {
  using Clock = std::chrono::steady_clock;
  Rig rig({.budget = mib(1), .run_ahead = {.batches = 2, .time = std::chrono::nanoseconds(0)}});
  std::optional<Tensor> live(rig.filled(kib(512), 1));
  constexpr std::array kStreams{StreamRole::kCompute, StreamRole::kCompute2, StreamRole::kCopyIn};
  std::vector<Gate*> gates;
  std::vector<Batch> submitted;
  for (const StreamRole stream : kStreams) {
    gates.push_back(&rig.gate());
    std::thread([&] {
      submitted.push_back(rig->begin_batch("train", {.hint = Bytes{}}));
      rig->submit("work", {.stream = stream}, pass(*gates.back()));
    }).join();
  }
  submitted.clear();
  // It waits for room, and then, with room, since two batches are submitted.
  std::vector<Clock::time_point> times;
  rig.backend.before_wait = [&](Point) {
    times.push_back(Clock::now());
    live.reset();
    while (Clock::now() == times.back()) continue;
    times.push_back(Clock::now());
    gates.at(times.size() / 2 - 1)->open();
  };
  ToldTimeline told;
  // Counts too: a wait begins where the last one ended.
  told.write_stalls_for(std::chrono::milliseconds(1));
  const Clock::time_point begun = Clock::now();
  { const Batch batch = rig->begin_batch("train", {.hint = mib(1)}); }
  const Clock::time_point admitted = Clock::now();
  rig.backend.before_wait = nullptr;
  gates.back()->open();
  ASSERT_EQ(times.size(), 4U);
  const AdmissionStatistics counted = rig->admission();
  EXPECT_EQ(counted.stalled, 1U);
  EXPECT_EQ(counted.budget.count, 1U);
  EXPECT_EQ(counted.soft.count, 1U);
  EXPECT_EQ(counted.turn.count, 0U);
  EXPECT_GE(counted.budget.total, times[1] - times[0]);
  EXPECT_LE(counted.budget.total, times[2] - begun);
  EXPECT_GE(counted.soft.total, times[3] - times[2]);
  EXPECT_LE(counted.soft.total, admitted - times[1]);
  EXPECT_GE(counted.budget.total + counted.soft.total, times[3] - times[0]);
  const auto stalls = told.of(Kind::kStall);
  ASSERT_EQ(stalls.size(), 2U);
  EXPECT_EQ(stalls[0].detail, static_cast<int>(TimelineStall::kBudget));
  EXPECT_EQ(stalls[1].detail, static_cast<int>(TimelineStall::kRunAhead));
  EXPECT_LE(stalls[0].end, stalls[1].begin);
  EXPECT_EQ(stalls[0].batch, told.of(Kind::kAdmit).at(0).batch);
  EXPECT_EQ(stalls[1].batch, stalls[0].batch);
}

TEST(SchedulerTimeline, AStallThatIsCancelledCountsToo) {
  Rig rig({.run_ahead = {.batches = 1, .time = std::chrono::nanoseconds(0)}});
  Gate& gate = rig.gate();
  {
    const Batch batch = rig->begin_batch("train");
    rig->submit("work", {}, pass(gate));
  }
  const ToldTimeline told;
  std::stop_source stop;
  rig.backend.before_wait = [&stop](Point) { stop.request_stop(); };
  EXPECT_THROW((void)rig->begin_batch("train", {.stop = stop.get_token()}), Cancelled);
  rig.backend.before_wait = nullptr;
  gate.open();
  EXPECT_EQ(rig->admission().stalled, 1U);
  EXPECT_EQ(rig->admission().soft.count, 1U);
  EXPECT_EQ(told.of(Kind::kStall).size(), 1U);
}

TEST(SchedulerTimeline, AnAdmissionHasTheTargetThatAdaptedSoFar) {
  Rig rig;
  const ToldTimeline told;
  Gate& gate = rig.hold(StreamRole::kCompute);
  rig.backend.before_wait = [&gate](Point) { gate.open(); };  // nobody waits before it stalls
  for (std::uint64_t i = 0; i < RunAheadLimit::kFirstBatches; ++i) {
    const Batch batch = rig->begin_batch("train");
    (void)rig.filled(kib(4), 1);
  }
  rig->wait_all();
  rig.backend.before_wait = nullptr;
  { const Batch batch = rig->begin_batch("train"); }  // nothing settles that could move the target
  const std::chrono::nanoseconds target = rig->admission().run_ahead.target;
  const auto admitted = told.of(Kind::kAdmit);
  ASSERT_EQ(admitted.size(), RunAheadLimit::kFirstBatches + 1);
  EXPECT_EQ(admitted.front().requested, 0U) << "it begins with a number of batches";
  EXPECT_EQ(admitted.back().requested, target.count());
  EXPECT_GT(target.count(), 0);
}

TEST(SchedulerTimeline, AnAdmissionHasTheChosenRunAheadTargetIfThereIsOne) {
  constexpr std::chrono::nanoseconds kTarget = std::chrono::milliseconds(3);
  for (const auto& [options, told_of] :
       {std::pair{RigOptions{.run_ahead = {.batches = 1, .time = kTarget}}, kTarget.count()},
        std::pair{RigOptions{.policy = Policy::kBackstop, .run_ahead = {.time = kTarget}}, 0L},
        std::pair{RigOptions{.run_ahead = {.batches = std::nullopt}}, 0L}}) {
    Rig rig(options);
    const ToldTimeline told;
    { const Batch batch = rig->begin_batch("train"); }
    EXPECT_EQ(told.of(Kind::kAdmit).at(0).requested, told_of);
  }
}

/// A task that waits at a gate.
class Stands final : public Task {
 public:
  explicit Stands(Gate& gate) : gate_(gate) {}
  void run(Stream& /*stream*/) noexcept override { gate_.pass(); }
  void finished(const TaskTime& /*time*/) noexcept override {}
  [[nodiscard]] TaskInfo info() const noexcept override { return {.name = "stands"}; }

 private:
  Gate& gate_;
};

TEST(StreamTimeline, AWaitForAnotherStreamIsASliceOfItsOwn) {
  const ToldTimeline told;
  Gate gate;
  Stands first(gate);
  Stands second(gate);
  CpuStream copies(StreamRole::kCopyIn);
  CpuStream compute(StreamRole::kCompute);
  const std::uint64_t point = copies.enqueue(first);
  compute.enqueue_wait(copies, point);
  const std::uint64_t last = compute.enqueue(second);
  gate.await_arrival();
  while (copies.waiting() == 0) std::this_thread::yield();
  gate.open();
  ASSERT_TRUE(compute.wait(last, {}));
  const auto waits = told.of(Kind::kStreamWait);
  ASSERT_EQ(waits.size(), 1U);
  EXPECT_EQ(told.text(waits[0].name), to_string(StreamRole::kCopyIn));
  EXPECT_EQ(waits[0].stream, compute.id().value);
  EXPECT_EQ(waits[0].id, copies.id().value);
  const auto executed = told.of(Kind::kExecute);
  ASSERT_EQ(executed.size(), 2U);
  EXPECT_EQ(told.text(executed[1].name), "stands");
  EXPECT_LT(waits[0].end, executed[1].begin);
}

TEST(StreamTimeline, StreamsHaveNamesHoweverLateTheRecorder) {
  Rig rig;
  const ToldTimeline told;
  for_each_source([&](TimelineSource& source) { source.record_live(told.itself()); });
  EXPECT_EQ(told.of(Kind::kStream).size(), kStreamRoles);
  const Device later = open_device("cpu");
  EXPECT_EQ(told.of(Kind::kStream).size(), 2 * kStreamRoles);
}

TEST(SchedulerTimeline, ALateRecorderIsToldOfOpenAndSubmittedBatches) {
  Rig rig;
  Gate& gate = rig.gate();
  {
    const Batch batch = rig->begin_batch("late");
    rig->submit("wait", {.writes = {rig->empty({4})}}, pass(gate));
  }
  const Batch open = rig->begin_batch("late", {.hint = kib(4)});
  const ToldTimeline told;
  for_each_source([&](TimelineSource& source) { source.record_live(told.itself()); });
  const auto admitted = told.of(Kind::kAdmit);
  ASSERT_EQ(admitted.size(), 2U);
  for (const TimelineRecord& record : admitted) {
    EXPECT_EQ(record.detail, static_cast<int>(TimelineAdmission::kBefore));
  }
  EXPECT_EQ(told.of(Kind::kClose).size(), 1U);
  LiveFigures figures;
  for_each_source([&](TimelineSource& source) { source.add_figures(figures); });
  EXPECT_EQ(figures.open, 1U);
  EXPECT_EQ(figures.submitted, 1U);
  gate.open();
}

TEST(SchedulerTimeline, ABatchIsToldOfOnceThoughItBeginsWhileTheRecorderLooksAtWhatIsThere) {
  Rig rig;
  Gate& gate = rig.gate();
  const ToldTimeline told;
  const auto look = [&] {
    for_each_source([&](TimelineSource& source) { source.record_live(told.itself()); });
  };
  {
    const Batch batch = rig->begin_batch("early");
    look();
    rig->submit("wait", {.writes = {rig->empty({4})}}, pass(gate));
  }
  look();
  EXPECT_EQ(told.of(Kind::kAdmit).size(), 1U);
  EXPECT_EQ(told.of(Kind::kClose).size(), 1U);
  gate.open();
  rig->wait_all();
}

TEST(SchedulerTimeline, ABatchThatSettlesWhileNothingIsRecordedIsToldOfAtTheNextStart) {
  Rig rig({.policy = Policy::kUnbounded});
  Gate& gate = rig.gate();
  const auto submit = [&] { rig->submit("wait", {.writes = {rig->empty({4})}}, pass(gate)); };
  std::optional<ToldTimeline> told(std::in_place);
  {
    const Batch closed = rig->begin_batch("closed while it was recorded");
    submit();
  }
  {
    const Batch open = rig->begin_batch("open at the stop");
    told.reset();
    submit();
  }
  {
    const Batch unknown = rig->begin_batch("begun after the stop");
    submit();
  }
  gate.open();
  rig->wait_all();
  (void)rig->begin_batch("looks at what the device is done with");
  const auto names_of = [&](Kind kind) {
    std::vector<std::string> names;
    for (const TimelineRecord& record : told->of(kind)) names.push_back(told->text(record.name));
    return names;
  };
  using Names = std::vector<std::string>;
  for (int i = 0; i < 2; ++i) {  // once each
    told.emplace();
    for_each_source([&](TimelineSource& source) { source.record_live(told->itself()); });
    EXPECT_EQ(names_of(Kind::kSettle),
              i == 0 ? (Names{"closed while it was recorded", "open at the stop"}) : Names{});
    const auto closed = told->of(Kind::kClose);
    const auto is_of = [&](const TimelineRecord& record) {
      return told->text(record.name) == "open at the stop";
    };
    EXPECT_EQ(std::ranges::count_if(closed, is_of), i == 0 ? 1 : 0);
    told.reset();
  }
}

}  // namespace
}  // namespace weir
