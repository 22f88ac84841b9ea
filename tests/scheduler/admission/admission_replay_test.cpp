// What real runs record of their batches is what the rules of admission allow.

#include "scheduler/admission/admission_replay.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <string>
#include <vector>

#include "scheduler/rig.hpp"
#include "support/told_timeline.hpp"

namespace weir {
namespace {

using namespace testing;  // NOLINT: the fakes and helpers of the suite
using Records = std::vector<TimelineRecord>;

constexpr RunAhead kTwo{.batches = 2, .time = std::chrono::nanoseconds(0)};
constexpr Bytes kBudget = kib(256);

AdmissionReplay replay_of(const ToldTimeline& told, bool one_thread) {
  return AdmissionReplay({.budget = kBudget,
                          .run_ahead = kTwo,
                          .one_thread = one_thread,
                          .text = [&told](std::uint32_t number) { return told.text(number); }});
}

/// Allocates two blocks of half of `bytes` on two streams, and frees them.
void run_batch(Rig& rig, Bytes bytes, const std::string& kind) {
  const Batch batch = rig->begin_batch(kind, {.hint = bytes});
  const Tensor staged = rig->empty(shape_of({bytes.count / 2}));
  const Tensor out = rig->empty(shape_of({bytes.count / 2}));
  rig->submit("stage", {.writes = {staged}, .stream = StreamRole::kCopyIn}, nothing());
  rig->submit("use", {.reads = {staged}, .writes = {out}}, nothing());
}

/// One producer of batches of several sizes, some of which fill the budget.
void run_alone(Rig& rig) {
  Gate& gate = rig.hold(StreamRole::kCompute);  // so that the second is beside the first
  for (int i = 0; i < 60; ++i) {
    if (i == 2) gate.open();
    const Bytes bytes = kib(std::uint64_t{32} << static_cast<unsigned>(i % 4));
    run_batch(rig, bytes, "of " + std::to_string(bytes.count));
  }
  rig->wait_all();
}

TEST(AdmissionReplayTest, EveryTransitionOfOneProducerIsAllowed) {
  const ToldTimeline told;
  {
    Rig rig({.budget = kBudget, .run_ahead = kTwo});
    run_alone(rig);
  }
  AdmissionReplay replay = replay_of(told, true);
  EXPECT_EQ(replay.replay(told.records()), std::nullopt);
  EXPECT_EQ(replay.admitted(), 60U);
  EXPECT_GT(replay.beside(), 0U);
  EXPECT_EQ(replay.forced(), 0U);
}

TEST(AdmissionReplayTest, EveryTransitionOfThreeProducersIsAllowed) {
  const ToldTimeline told;
  {
    Rig rig({.budget = kBudget, .run_ahead = kTwo});
    std::vector<std::future<void>> producers;
    for (const std::uint64_t size : {64U, 128U, 256U}) {
      producers.push_back(std::async(std::launch::async, [&rig, size] {
        for (int i = 0; i < 40; ++i) run_batch(rig, kib(size), "of " + std::to_string(size));
      }));
    }
    for (auto& producer : producers) producer.get();
    rig->wait_all();
  }
  AdmissionReplay replay = replay_of(told, false);
  EXPECT_EQ(replay.replay(told.records()), std::nullopt);
  EXPECT_EQ(replay.admitted(), 120U);
}

TEST(AdmissionReplayTest, ABatchThatIsForcedInIsAllowedWhereThereIsNoRoom) {
  const ToldTimeline told;
  {
    Rig rig({.budget = kBudget, .run_ahead = kTwo, .grace = std::chrono::milliseconds(1)});
    const Batch open = rig->begin_batch("open", {.hint = kib(256)});
    const Tensor held = rig.filled(kib(128), 1);
    std::async(std::launch::async, [&rig] { run_batch(rig, kib(128), "forced"); }).get();
  }
  AdmissionReplay replay = replay_of(told, false);
  EXPECT_EQ(replay.replay(told.records()), std::nullopt);
  EXPECT_EQ(replay.forced(), 1U);
}

/// A run that is allowed, and how it is changed.
struct Tampered : ::testing::Test {
  [[nodiscard]] std::string verdict(const Records& changed) {
    return replay_of(told, true).replay(changed).value_or("allowed");
  }
  [[nodiscard]] Records::iterator nth(TimelineKind kind, int n) {
    return std::ranges::find_if(
        records, [&](const TimelineRecord& record) { return record.kind == kind && n-- == 0; });
  }
  void SetUp() override {
    Rig rig({.budget = kBudget, .run_ahead = kTwo});
    run_alone(rig);
    records = told.records();
    ASSERT_EQ(verdict(records), "allowed");
  }

  const ToldTimeline told;
  Records records;
};

TEST_F(Tampered, ARunWithoutASettlingIsRefused) {
  records.erase(nth(TimelineKind::kSettle, 59));
  EXPECT_EQ(verdict(records), "a batch is not settled");
}

TEST_F(Tampered, ARunWithTwoClosingsOfABatchIsRefused) {
  const auto close = nth(TimelineKind::kClose, 7);
  records.insert(close, *close);
  EXPECT_NE(verdict(records).find("closed twice"), std::string::npos) << verdict(records);
}

TEST_F(Tampered, ARunWithAnotherPeakIsRefused) {
  nth(TimelineKind::kClose, 7)->bytes += 1;
  EXPECT_NE(verdict(records).find("another peak"), std::string::npos) << verdict(records);
}

TEST_F(Tampered, ARunThatAdmitsAThirdBatchBesideTwoIsRefused) {
  // Every settling comes last.
  std::stable_partition(records.begin(), records.end(), [](const TimelineRecord& record) {
    return record.kind != TimelineKind::kSettle;
  });
  EXPECT_NE(verdict(records).find("must wait"), std::string::npos) << verdict(records);
}

TEST_F(Tampered, ARunThatForcesABatchInBesideRoomIsRefused) {
  nth(TimelineKind::kAdmit, 7)->detail = static_cast<std::uint8_t>(TimelineAdmission::kForced);
  EXPECT_NE(verdict(records).find("without need"), std::string::npos) << verdict(records);
}

TEST_F(Tampered, ARunThatSettlesOutOfOrderIsRefused) {
  auto first = nth(TimelineKind::kSettle, 0);
  first->batch += 1;
  EXPECT_NE(verdict(records), "allowed");
}

}  // namespace
}  // namespace weir
