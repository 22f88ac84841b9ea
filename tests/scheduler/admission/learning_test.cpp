// What admission expects of a batch, as its user sees it: the kind's largest footprint so far, and
// no more.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "scheduler/rig.hpp"
#include "support/log_capture.hpp"

namespace weir {
namespace {

using namespace testing;  // NOLINT: the fakes and helpers of the suite
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;

/// The charge of a batch of this kind that begins alone. Teaches nothing.
Bytes expected_of(Rig& rig, std::string_view kind) {
  rig->wait_all();
  Batch batch = rig->begin_batch(kind);
  const Bytes charged = rig->admission().charged;
  batch.abandon();
  return charged;
}

/// Runs `body` as a batch and waits for its end.
void run_batch_of(Rig& rig, const std::function<void()>& body, const BatchOptions& options = {}) {
  {
    const Batch batch = rig->begin_batch("train", options);
    body();
  }
  rig->wait_all();
}

TEST(Learning, WhatABatchIsExpectedToHoldIsToldOnceOneHasEnded) {
  Rig rig;
  EXPECT_EQ(rig->expected_footprint("train"), std::nullopt);
  const auto take_64 = [&] { (void)rig.filled(kib(64), 1); };
  run_batch_of(rig, take_64);
  EXPECT_EQ(rig->expected_footprint("train"), kib(64));
  EXPECT_EQ(rig->expected_footprint("test"), kib(64)) << "as the largest that is known";
}

TEST(Learning, ADeviceThatIsLateDoesNotMakeBatchesLarger) {
  // All memory that the batch stages awaits the device at once, and is then freed by itself.
  Rig rig({.budget = mib(4)});
  Gate& gate = rig.hold(StreamRole::kCompute2);
  {
    const Batch batch = rig->begin_batch("train");
    for (int i = 0; i < 40; ++i) {
      const Tensor staged = rig.filled(kib(32), 1, StreamRole::kCopyIn);
      rig->submit("use", {.reads = {staged}, .stream = StreamRole::kCompute2}, nothing());
    }
  }
  EXPECT_EQ(rig->admission().charged, kib(32 * 40)) << "what it left awaiting";
  gate.open();
  EXPECT_EQ(expected_of(rig, "train"), kib(32));
}

TEST(Learning, WeightsThatTheFirstBatchMakesGiveNoFalseWarning) {
  const LogCapture log;
  Rig rig({.budget = mib(3)});
  std::optional<Tensor> weights;
  const auto train = [&] {
    if (!weights) weights = rig.filled(mib(2), 1);
    (void)rig.filled(kib(64), 1);
  };
  for (int i = 0; i < 3; ++i) run_batch_of(rig, train);
  EXPECT_THAT(log.containing("no room"), SizeIs(0));
}

TEST(Learning, WhatTheNextBatchFreesIsPartOfTheFootprint) {
  Rig rig({.budget = mib(4)});
  Tensor last;
  for (int i = 0; i < 6; ++i) {
    run_batch_of(rig, [&] {
      Tensor fresh = rig.filled(kib(128), 1);
      last = std::move(fresh);  // double buffering: frees the previous one
    });
    EXPECT_EQ(expected_of(rig, "train"), kib(128)) << "after batch " << i + 1;
  }
}

TEST(Learning, ANewKindEveryFiveBatchesHoldsNobodyWhereThereIsRoom) {
  // Both limits are on: the device time of an unknown kind is a guess, too.
  Rig rig({.budget = mib(16), .run_ahead = {.batches = 2, .time = std::chrono::minutes(30)}});
  run_batch_of(rig, [&] { (void)rig.filled(mib(1), 1); });
  rig.hold(StreamRole::kCompute);
  WithoutWaiting batches(rig);
  for (int i = 0; i < 100; ++i) {
    const Batch batch = batches.begin("kind " + std::to_string(i / 5));
    (void)rig.filled(mib(1), 1);
  }
  const AdmissionStatistics counts = rig->admission();
  EXPECT_EQ(counts.budget.count + counts.soft.count + counts.turn.count, 0U);
}

/// Begins a batch on its own thread: one of the calling thread would join its batch.
Batch begin_elsewhere(Rig& rig, std::string_view kind) {
  Batch batch;
  std::thread([&] { batch = rig->begin_batch(kind); }).join();
  return batch;
}

TEST(Learning, ABatchOfAnUnknownKindIsTheOnlyOneThatIsOpen) {
  // The largest known kind is a guess: beside another open batch each may take what both need.
  for (const auto& [open, next] : {std::pair{"train", "new"}, std::pair{"new", "train"}}) {
    Rig rig({.budget = mib(1), .run_ahead = {.batches = std::nullopt}});
    for (int i = 0; i < 2; ++i) run_batch_of(rig, [&] { (void)rig.filled(kib(64), 1); });
    rig.hold(StreamRole::kCompute);
    WithoutWaiting batches(rig);
    {
      const Batch submitted = batches.begin("train");
      rig->submit("work", {}, nothing());
    }
    Batch other = begin_elsewhere(rig, open);
    EXPECT_THROW((void)batches.begin(next), Cancelled) << next << " beside " << open;
    other.close();
  }
}

/// A batch of 768 KiB of 1 MiB that is not closed, and the line that begins it. On its own thread,
/// whose later batches would join it.
Batch leak_batch(Rig& rig, std::string& where) {
  Batch leaked;
  std::thread([&] { leaked = rig->begin_batch("lost", {.hint = kib(768)}); }).join();
  where = "learning_test.cpp:" + std::to_string(__LINE__ - 1);
  return leaked;
}

TEST(Leaks, ABatchThatIsNeverClosedCostsOneGraceAndIsNamedWithItsCallSite) {
  const LogCapture log;
  Rig rig({.budget = mib(1),
           .run_ahead = {.batches = std::nullopt},
           .grace = std::chrono::milliseconds(1)});
  std::string where;
  Batch leaked = leak_batch(rig, where);
  for (int i = 0; i < 50; ++i) {
    run_batch_of(rig, [&] { (void)rig.filled(kib(512), 1); }, {.hint = kib(512)});
  }
  EXPECT_EQ(rig->admission().forced, 1U);
  const auto warnings = log.containing("promised to open batches");
  ASSERT_THAT(warnings, SizeIs(1));
  EXPECT_THAT(warnings.front(), AllOf(HasSubstr("'lost'"), HasSubstr(where)));
  leaked.close();
}

void close_many_small(Rig& rig, WithoutWaiting& batches) {
  for (std::uint64_t i = 0; i < Ledger::kManyBatches; ++i) {
    const Batch batch = batches.begin("small", kib(4));
    rig->submit("work", {}, nothing());
  }
}

TEST(Leaks, AnOpenBatchKeepsItsPromiseForTheGraceHoweverManyOthersAreClosed) {
  // Its thread may read its input, or have no core to run on.
  const LogCapture log;
  Rig rig({.budget = mib(1), .run_ahead = {.batches = std::nullopt}});
  std::string where;
  Batch slow = leak_batch(rig, where);
  rig.hold(StreamRole::kCompute);
  WithoutWaiting batches(rig);
  close_many_small(rig, batches);
  EXPECT_THROW((void)batches.begin("large", kib(512)), Cancelled);
  EXPECT_THAT(log.containing("still open"), SizeIs(0));
  slow.close();
}

TEST(Leaks, ABatchThatIsNeverClosedIsNamedAlsoWhereTheDeviceIsNeverIdle) {
  const LogCapture log;
  Rig rig({.budget = mib(1), .run_ahead = {.batches = std::nullopt}, .grace = {}});
  std::string where;
  Batch leaked = leak_batch(rig, where);
  rig.hold(StreamRole::kCompute);
  WithoutWaiting batches(rig);
  close_many_small(rig, batches);
  EXPECT_THAT(log.containing("still open"), SizeIs(0)) << "it holds nobody back";
  const Batch batch = batches.begin("large", kib(512));
  const auto warnings = log.containing("still open");
  ASSERT_THAT(warnings, SizeIs(1));
  EXPECT_THAT(warnings.front(), AllOf(HasSubstr("'lost'"), HasSubstr(where)));
  leaked.close();
}

TEST(Leaks, ABatchThatIsNeverClosedIsNoRunAheadOnceItsGraceIsOver) {
  const LogCapture log;
  Rig rig({.budget = mib(4),
           .run_ahead = {.batches = 2, .time = std::chrono::nanoseconds(0)},
           .grace = {}});
  std::string where;
  Batch leaked = leak_batch(rig, where);
  for (std::uint64_t i = 0; i < Ledger::kManyBatches; ++i)
    run_batch_of(rig, [] {}, {.hint = kib(4)});
  rig.hold(StreamRole::kCompute);
  WithoutWaiting batches(rig);
  for (int i = 0; i < 2; ++i) {
    const Batch batch = batches.begin("small", kib(4));
    rig->submit("work", {}, nothing());
  }
  EXPECT_THAT(log.containing("still open"), SizeIs(1));
  leaked.close();
}

TEST(CausedIdle, IsNotCountedOnceTheFrontendHasWaitedForTheDeviceItself) {
  for (const bool waits : {false, true}) {
    Rig rig({.run_ahead = {.batches = 2, .time = std::chrono::nanoseconds(0)}});
    Gate& gate = rig.hold(StreamRole::kCompute);
    const auto train = [&] {
      const Batch batch = rig->begin_batch("train");
      (void)rig.filled(kib(4), 1);
    };
    for (int i = 0; i < 2; ++i) train();
    const std::uint64_t before = rig.backend.waits();
    auto held_back = std::async(std::launch::async, [&] {
      (void)rig->begin_batch("empty");
      if (waits) rig->wait_all();
    });
    rig.backend.await_waits(before + 1);
    gate.open();
    held_back.get();
    const auto is_counted = [&] { return rig->admission().run_ahead.caused_idle.count() != 0; };
    Progress& device = rig.backend.progress();
    for (int i = 0; i < (waits ? 100 : 100'000) && !is_counted(); ++i) {
      EXPECT_TRUE(device.wait(device.record(rig.backend.stream(StreamRole::kCompute)), {}));
      train();  // as a rule the device is idle before it
    }
    EXPECT_EQ(is_counted(), !waits);
  }
}

}  // namespace
}  // namespace weir
