#include "scheduler/admission/run_ahead_limit.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <random>
#include <tuple>

#include "scheduler/admission/admission_decision.hpp"
#include "scheduler/admission/free_run.hpp"
#include "support/random_seed.hpp"

namespace weir {
namespace {

using Time = RunAheadLimit::Duration;

constexpr int kPart = RunAheadLimit::kLostPart;
constexpr Time kBatch = std::chrono::microseconds(kPart);  ///< what each takes on the device
constexpr Time kMayLose = kBatch / kPart;
constexpr auto kWindow = static_cast<int>(RunAheadLimit::kWindow);
constexpr auto kFirstWindow = static_cast<int>(RunAheadLimit::kFirstBatches);
/// The limit after the first window: of 192 batches one runs, and one asks.
constexpr Time kFirst = 190 * kBatch;

Time time_of(const RunAheadLimit& limit) { return limit.target().limit.time.value(); }
RunAheadTarget adapted(Time time, bool half_of_room) {
  return {.limit = {.batches = 2, .time = time}, .half_of_room = half_of_room};
}

/// The queue of the first stream.
StreamQueue queue_of(Time time) { return {.role = 0, .time = time, .all = time + kBatch}; }

/// Settles batches that lose nothing.
void settle(RunAheadLimit& limit, int batches) {
  for (int i = 0; i < batches; ++i) limit.note_settled(kBatch, {});
}
/// Ends windows of batches that are each closed behind `queued`, and lose nothing.
void end_windows(RunAheadLimit& limit, int windows, Time queued, bool held_back = true) {
  for (int i = 0; i < windows * kWindow; ++i) {
    if (held_back) limit.note_held_back(queue_of(queued));
    limit.note_closed(queue_of(queued));
    settle(limit, 1);
  }
}
/// Loses so much beyond what its batch allows.
void lose(RunAheadLimit& limit, Time lost) { limit.note_settled(kBatch, lost + kMayLose); }

/// A limit after its first window, in which all was lost that may be.
RunAheadLimit begun() {
  RunAheadLimit limit;
  for (int i = 0; i < kFirstWindow; ++i) lose(limit, {});
  EXPECT_EQ(time_of(limit), kFirst);
  return limit;
}

TEST(RunAheadLimit, BeginsWith192BatchesAndHalfOfTheRoomAndHalfASecond) {
  RunAheadLimit limit;
  RunAheadTarget first = adapted(RunAheadLimit::kFirstTime, true);
  first.most = RunAheadLimit::kUnknownBatches;
  EXPECT_EQ(limit.target(), first) << "the time of no batch is known";
  first.most = RunAheadLimit::kFirstBatches;
  for (int i = 1; i < kFirstWindow; ++i) {
    settle(limit, 1);
    ASSERT_EQ(limit.target(), first);
  }
  EXPECT_EQ(limit.statistics({}).target, Time{}) << "nothing was measured yet";
  settle(limit, 1);
  EXPECT_EQ(limit.target(), adapted(kFirst, true));
  RunAheadLimit slow;
  for (int i = 0; i < kFirstWindow; ++i) slow.note_settled(RunAheadLimit::kFirstTime / 10, {});
  EXPECT_EQ(slow.target(), adapted(RunAheadLimit::kFirstTime, true));
}

TEST(RunAheadLimit, KeepsATargetThatWasChosenAndAllOfTheRoom) {
  for (const RunAhead& chosen :
       {RunAhead{.batches = 3, .time = Time{}}, RunAhead{.batches = 1, .time = 20 * kBatch},
        RunAhead{.batches = std::nullopt}}) {
    RunAheadLimit limit(chosen);
    end_windows(limit, 3, 5 * kBatch);
    lose(limit, 9 * kBatch);
    EXPECT_EQ(limit.target(kBatch), RunAheadTarget{.limit = chosen});
    EXPECT_EQ(limit.statistics(kBatch).target, chosen.time.value_or(Time{}));
    EXPECT_EQ(limit.statistics(kBatch).caused_idle, kBatch) << "counted all the same";
  }
}

TEST(RunAheadLimit, GrowsAtOnceBy32TimesWhatWasLostAtMostToTwoAndAHalfTimesWhatWasNeeded) {
  RunAheadLimit limit = begun();
  lose(limit, 3 * kBatch);
  EXPECT_EQ(time_of(limit), kFirst + 32 * 3 * kBatch);
  limit.note_settled(kBatch, 7 * kBatch);
  EXPECT_EQ(time_of(limit), (kFirst + 10 * kBatch) * 5 / 2);
  EXPECT_EQ(limit.statistics({}).most, time_of(limit));
}

TEST(RunAheadLimit, ALossBeforeAnybodyIsHeldBackAgainIsALateEffectOfTheSameLimit) {
  RunAheadLimit limit = begun();
  lose(limit, 10 * kBatch);
  for (int i = 0; i < 9; ++i) limit.note_settled(kBatch, 10 * kBatch);
  EXPECT_EQ(time_of(limit), (kFirst + 100 * kBatch) * 5 / 2);
  const Time before = time_of(limit);
  limit.note_held_back(queue_of(before));
  limit.note_settled(kBatch, kBatch);
  EXPECT_EQ(time_of(limit), before + 32 * kBatch) << "now it was this one";
}

TEST(RunAheadLimit, ALossEndsTheFirstWindowAndHalfOfTheRoomForGood) {
  RunAheadLimit limit;
  for (int i = 1; i < kWindow; ++i) lose(limit, {});
  lose(limit, 2 * kBatch);
  EXPECT_EQ(limit.target(), adapted(kFirst + 32 * 2 * kBatch, false));
  end_windows(limit, 300, 5 * kBatch);
  EXPECT_LT(time_of(limit), kBatch);
  EXPECT_FALSE(limit.target().half_of_room);
}

TEST(RunAheadLimit, ALossAmongTheFirst96BatchesEndsHalfOfTheRoomAndNotTheBeginning) {
  RunAheadLimit limit;
  limit.note_settled(kBatch / 50, kBatch);  // a short one, by which the others are not judged
  EXPECT_EQ(limit.target().limit.time, RunAheadLimit::kFirstTime);
  EXPECT_FALSE(limit.target().half_of_room);
  settle(limit, kFirstWindow - 1);
  EXPECT_GT(time_of(limit), kFirst - 2 * kBatch);
}

TEST(RunAheadLimit, ABeginningOfTwoBatchesEndsWithTheFirstLoss) {
  RunAheadLimit limit({}, 2);
  settle(limit, 2);
  lose(limit, 2 * kBatch);
  EXPECT_GE(time_of(limit), 2 * kBatch);
  EXPECT_LT(time_of(limit), 5 * kBatch + kBatch / 2);
  RunAheadLimit calm({}, 2);
  settle(calm, kWindow - 1);
  EXPECT_EQ(calm.target().most, 2U);
  settle(calm, 1);
  EXPECT_NE(calm.target().most, 2U);
}

TEST(RunAheadLimit, ForAPauseOfAMinuteNoQueueIsKept) {
  RunAheadLimit limit = begun();
  limit.note_settled(kBatch, std::chrono::minutes(1));
  EXPECT_EQ(time_of(limit), (kFirst + RunAheadLimit::kFirstTime) * 5 / 2);
  const auto until_made_up = static_cast<int>(kPart * (RunAheadLimit::kFirstTime / kBatch));
  settle(limit, until_made_up - kWindow);
  end_windows(limit, 3, 5 * kBatch);
  EXPECT_LE(time_of(limit), 5 * kBatch);
}

TEST(RunAheadLimit, ALateLossNeverLowersTheTarget) {
  RunAheadLimit limit = begun();
  lose(limit, 10 * kBatch);
  const Time grown = time_of(limit);
  for (const Time lost : {kBatch / 1000, kBatch}) {
    limit.note_settled(kBatch, lost);
    EXPECT_GE(time_of(limit), grown);
  }
}

TEST(RunAheadLimit, DoesNotGrowByThePartOfTheTimeThatMayBeLost) {
  RunAheadLimit limit = begun();
  settle(limit, kPart);  // the time of one batch may be lost
  const RunAheadTarget before = limit.target();
  for (int i = 0; i < 2; ++i) {
    lose(limit, kBatch / 2);
    EXPECT_EQ(limit.target(), before);
  }
  lose(limit, kBatch);
  EXPECT_EQ(time_of(limit), kFirst + 32 * kBatch);
}

TEST(RunAheadLimit, UnusedAllowanceAddsUpToTheTimeOf16Batches) {
  RunAheadLimit limit = begun();
  settle(limit, 100 * kPart);
  limit.note_settled(kBatch, 21 * kBatch);
  EXPECT_EQ(time_of(limit), kFirst + 32 * 5 * kBatch);
}

TEST(RunAheadLimit, FallsByHalfOfWhatItDoesNotKeepAndByAllOfItAfterTwoCalmWindows) {
  RunAheadLimit limit = begun();
  for (const int queued : {30, 10, 22}) limit.note_closed(queue_of(queued * kBatch));
  Time needed = 20 * kBatch;  // the deepest drain, fading
  Time allowed{};
  const auto kept_after_a_window = [&] {
    needed -= needed / RunAheadLimit::kFadePart;
    allowed += kWindow * kMayLose;
    return needed * 5 / 2 - allowed;
  };
  const auto half_way = [](Time from, Time to) { return from - (from - to) / 2; };
  const Time once = half_way(100 * kBatch, kept_after_a_window());
  end_windows(limit, 1, 100 * kBatch);
  EXPECT_EQ(time_of(limit), once) << "from the longest queue of the window";
  const Time twice = half_way(once, kept_after_a_window());
  end_windows(limit, 1, 100 * kBatch);
  EXPECT_EQ(time_of(limit), twice) << "the first window that needed no more";
  const Time kept = kept_after_a_window();
  end_windows(limit, 1, 100 * kBatch);
  EXPECT_EQ(time_of(limit), kept) << "the second one";
  end_windows(limit, 1, 9 * kBatch);
  EXPECT_EQ(time_of(limit), 9 * kBatch) << "nothing longer was used";
  end_windows(limit, 300, 100 * kBatch);
  EXPECT_EQ(time_of(limit), Time{});
  EXPECT_EQ(limit.statistics({}).most, kFirst);
}

TEST(RunAheadLimit, AQueueThatFellBecauseNobodyWasAdmittedIsNoDrain) {
  RunAheadLimit limit = begun();
  limit.note_closed(queue_of(90 * kBatch));
  limit.note_held_back(queue_of(70 * kBatch));  // until then
  limit.note_closed(queue_of(70 * kBatch));
  limit.note_drained();  // the frontend has waited for the device
  limit.note_closed(queue_of({}));
  end_windows(limit, 1, 90 * kBatch);
  EXPECT_EQ(time_of(limit), 45 * kBatch);
}

TEST(RunAheadLimit, ALongBatchThatBeginsToRunIsNoDrain) {
  RunAheadLimit limit = begun();
  limit.note_closed({.role = 0, .time = 90 * kBatch, .all = 91 * kBatch});
  limit.note_closed({.role = 0, .time = 40 * kBatch, .all = 91 * kBatch});
  end_windows(limit, 1, 90 * kBatch);
  EXPECT_EQ(time_of(limit), 45 * kBatch);
}

/// Settles batches that take so long on the streams of two roles.
void run(RunAheadLimit& limit, int batches, StreamRole a, Time on_a, StreamRole b, Time on_b) {
  BatchRun ran{};
  ran.at(index_of(a)).device_time = on_a;
  ran.at(index_of(b)).device_time = on_b;
  for (int i = 0; i < batches; ++i) {
    limit.note_ran(ran);
    limit.note_settled(kBatch, {});
  }
}

TEST(RunAheadLimit, KeepsAQueueBetweenComputeStreamsThatDriftApartAndTogether) {
  using R = StreamRole;
  for (const auto& [a, b, needs] :
       {std::tuple(R::kCompute, R::kCompute2, true), std::tuple(R::kCompute2, R::kCompute, true),
        std::tuple(R::kCopyIn, R::kCompute, false), std::tuple(R::kCompute, R::kCopyOut, false)}) {
    RunAheadLimit limit = begun();
    run(limit, 10, a, 3 * kBatch, b, kBatch);  // apart by 20
    run(limit, 10, a, kBatch, b, 3 * kBatch);  // and together: 10 are left as 10 came
    end_windows(limit, 3, 90 * kBatch);
    EXPECT_EQ(time_of(limit) > 20 * kBatch, needs);
    EXPECT_LT(time_of(limit), 30 * kBatch);
  }
}

TEST(RunAheadLimit, KeepsNoQueueBetweenComputeStreamsOfWhichOneIsAlwaysSlower) {
  for (const Time other : {Time{}, kBatch / 2}) {
    RunAheadLimit limit = begun();
    run(limit, 90, StreamRole::kCompute, kBatch, StreamRole::kCompute2, other);
    end_windows(limit, 3, 90 * kBatch);
    EXPECT_EQ(time_of(limit), Time{});
  }
}

TEST(RunAheadLimit, ADrainFadesAlsoWhileNobodyIsHeldBack) {
  RunAheadLimit limit = begun();
  limit.note_closed(queue_of(90 * kBatch));
  end_windows(limit, 300, 10 * kBatch, false);
  end_windows(limit, 2, 90 * kBatch);
  EXPECT_LT(time_of(limit), kBatch);
}

TEST(RunAheadLimit, AQueueThatFellWhileTimeWasLostIsNoDrain) {
  RunAheadLimit limit = begun();
  limit.note_closed(queue_of(2000 * kBatch));
  lose(limit, kBatch);
  limit.note_closed(queue_of({}));  // it has to fill again
  const Time before = time_of(limit);
  limit.note_held_back(queue_of(before));
  limit.note_settled(kBatch, 100 * kBatch);
  EXPECT_EQ(time_of(limit), (before + 100 * kBatch) * 5 / 2);
}

TEST(RunAheadLimit, MemoryThatHoldsABatchBackDoesNotChangeWhatALossIsCountedFrom) {
  RunAheadLimit limit = begun();
  lose(limit, 10 * kBatch);
  limit.note_full(queue_of(90 * kBatch));
  limit.note_settled(kBatch, kBatch);
  EXPECT_EQ(time_of(limit), (kFirst + 11 * kBatch) * 5 / 2);
}

TEST(RunAheadLimit, ABatchOfAnotherStreamWithAShortQueueIsNoDrain) {
  RunAheadLimit limit = begun();
  limit.note_closed(queue_of(90 * kBatch));
  limit.note_closed({.role = 3});
  end_windows(limit, 1, 90 * kBatch);
  EXPECT_EQ(time_of(limit), 45 * kBatch);
}

TEST(RunAheadLimit, TheTargetHidesTheCopiesOfTheNextBatch) {
  EXPECT_EQ(begun().target(kBatch), adapted(kFirst + kBatch, true));
}

TEST(RunAheadLimit, DoesNotFallWhileNobodyIsHeldBack) {
  RunAheadLimit limit = begun();
  end_windows(limit, 20, 5 * kBatch, false);
  EXPECT_EQ(time_of(limit), kFirst);
  limit.note_held_back(queue_of(6 * kBatch));
  end_windows(limit, 1, 6 * kBatch, false);
  EXPECT_EQ(time_of(limit), 3 * kBatch) << "once in a window is enough, and it is the first";
}

TEST(RunAheadLimit, DoesNotFallWhileMoreWasLostThanMayBe) {
  RunAheadLimit limit = begun();
  lose(limit, kBatch);
  for (int batches = kWindow; batches < kPart; batches += kWindow) {
    end_windows(limit, 1, 5 * kBatch);
    EXPECT_EQ(time_of(limit), kFirst + 32 * kBatch);
  }
  end_windows(limit, 1, 5 * kBatch);
  EXPECT_EQ(time_of(limit), 5 * kBatch);
}

TEST(RunAheadLimit, EqualBatchesOfAFastHostAreTwoInFlightWithin1000) {
  RunAheadLimit limit;
  std::uint64_t in_flight = 0;
  std::uint64_t most = 0;
  for (int i = 0; i < 1100; ++i) {
    if (i == 1000) most = 0;
    const auto state = [&] {
      const Time queued = kBatch * (in_flight < 2 ? 0 : in_flight - 1);
      return AdmissionState{.submitted = in_flight, .queued = queued};
    };
    for (; decide(state(), limit.target()) == Decision::kAdmit; ++in_flight) {
      ASSERT_LT(in_flight, RunAheadLimit::kFirstBatches);
      limit.note_closed(queue_of(state().queued));
    }
    most = std::max(most, in_flight--);
    limit.note_held_back(queue_of(state().queued));
    limit.note_settled(kBatch, {});
  }
  EXPECT_EQ(most, 2U);
}

TEST(Invariant8, AHostThatIsNeverHeldBackNeverMovesTheTarget) {
  FreeRun run;
  RunAheadLimit limit;
  Time ended{};
  for (int i = 1; i < 2000; ++i) {
    const Time gap = i % 70 * kBatch;
    BatchRun batch{};
    batch.at(0) = {.device_time = kBatch, .gap = gap, .starved = gap, .begun = ended + gap};
    batch.at(0).ended = ended = batch.at(0).begun + kBatch;
    limit.note_closed(queue_of({}));
    limit.note_settled(kBatch, run.note_settled(batch, run.note_held_back({})));
    if (i < kFirstWindow) continue;
    ASSERT_EQ(limit.target(), adapted(kFirst, true)) << "the time of the first batches";
  }
  EXPECT_EQ(limit.statistics(run.lost()).most, kFirst);
  EXPECT_EQ(limit.statistics(run.lost()).caused_idle, Time{});
}

// Whatever is lost, and however short the queues are.
TEST(RunAheadLimit, WhatIsLostBeyondWhatMayBeIsNeverMoreThanTheTarget) {
  for (int run = 0; run < 50; ++run) {
    const std::uint64_t seed = testing::random_seed() + static_cast<std::uint64_t>(run);
    SCOPED_TRACE(testing::seed_message(seed));
    std::mt19937_64 random(seed);
    RunAheadLimit limit;
    Time time{};
    Time lost{};
    for (int i = 0; i < 20'000; ++i) {
      const Time device_time(1 + random() % 1'000'000);
      const Time newly(random() % 256 == 0 ? random() % 4'000'000 : 0);
      time += device_time;
      lost += newly;
      const Time queued(random() % 8'000'000);
      if (random() % 2 == 0) limit.note_held_back(queue_of(queued));
      limit.note_closed(queue_of(queued));
      limit.note_settled(device_time, newly);
      ASSERT_LE(lost, time_of(limit) + time / kPart);
    }
  }
}

}  // namespace
}  // namespace weir
