#include "scheduler/admission/run_ahead_control.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <random>

namespace weir {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

/// A batch of 1 ms before which the device was idle for `gap`.
void settle(RunAheadControl& control, nanoseconds gap, nanoseconds credit) {
  control.note_settled({.device_time = milliseconds(1), .gap = gap, .credit = credit});
}

TEST(RunAheadControl, BeginsWithTwoBatchesAndNoTime) {
  const RunAheadControl control;
  EXPECT_EQ(control.target(), (RunAhead{.batches = 2, .time = nanoseconds(0)}));
}

TEST(RunAheadControl, KeepsATargetThatWasChosen) {
  for (const RunAhead& chosen :
       {RunAhead{.batches = 3, .time = nanoseconds(0)},
        RunAhead{.batches = 1, .time = milliseconds(20)}, RunAhead{.batches = std::nullopt}}) {
    RunAheadControl control(chosen);
    control.note_lead(milliseconds(7));
    settle(control, milliseconds(5), control.note_held_back(milliseconds(9)));
    EXPECT_EQ(control.target(), chosen);
    EXPECT_EQ(control.statistics().caused_idle, milliseconds(5)) << "counted all the same";
    EXPECT_EQ(control.statistics().lead + control.statistics().margin, nanoseconds(0))
        << "it has no parts";
  }
}

TEST(RunAheadControl, TheLeadIsThe95thPercentileOfTheLast64) {
  RunAheadControl control;
  control.note_lead(microseconds(5));
  EXPECT_EQ(control.statistics().lead, microseconds(5));
  for (int i = 1; i <= 64; ++i) control.note_lead(microseconds(i));
  EXPECT_EQ(control.statistics().lead, microseconds(61)) << "three of 64 are above";
  EXPECT_EQ(control.target().time, microseconds(61));
  for (int i = 0; i < 64; ++i) control.note_lead(microseconds(2));
  EXPECT_EQ(control.statistics().lead, microseconds(2)) << "older ones are forgotten";
}

TEST(RunAheadControl, IdleTimeIsOursOnlyAsFarAsWeHeldTheHostBack) {
  RunAheadControl control;
  const nanoseconds credit = control.note_held_back(milliseconds(3));
  settle(control, milliseconds(2), credit);
  EXPECT_EQ(control.statistics().margin, milliseconds(2));
  settle(control, milliseconds(2), credit);
  const nanoseconds margin =
      milliseconds(3) - nanoseconds(milliseconds(1)) / RunAheadControl::kIdlePart;
  EXPECT_EQ(control.statistics().margin, margin) << "one of its two was the host's own";
  settle(control, milliseconds(50), credit);
  EXPECT_EQ(control.statistics().margin, margin);
  EXPECT_EQ(control.statistics().caused_idle, milliseconds(3));
}

TEST(RunAheadControl, TheGapOfABatchThatWaitedForMemoryIsTheBudgets) {
  RunAheadControl control;
  const nanoseconds credit = control.note_held_back(milliseconds(3));
  control.note_settled({.device_time = milliseconds(1),
                        .gap = milliseconds(2),
                        .credit = credit,
                        .waited_for_memory = true});
  EXPECT_EQ(control.statistics().caused_idle.count(), 0);
  settle(control, milliseconds(2), credit);
  EXPECT_EQ(control.statistics().caused_idle, milliseconds(2)) << "of another frontend";
}

TEST(RunAheadControl, TheQueueMustHideTheLongestCopyOfABatchInTheLine) {
  RunAheadControl control;
  control.note_lead(milliseconds(2));
  EXPECT_EQ(control.target(milliseconds(5)).time, milliseconds(7));
  EXPECT_EQ(control.target().time, milliseconds(2));
  (void)control.note_held_back({}, milliseconds(3));
  EXPECT_EQ(control.statistics().copy, milliseconds(3));
  EXPECT_EQ(control.statistics().target, milliseconds(5)) << "at the last admission";
  (void)control.note_held_back({}, milliseconds(1));
  EXPECT_EQ(control.statistics().target, milliseconds(3));
  EXPECT_EQ(control.statistics().most, milliseconds(5));
}

TEST(RunAheadControl, TheMarginDoesNotGrowByTheIdleTimeThatIsAllowed) {
  constexpr int kBatches = 512;
  RunAheadControl control;
  const nanoseconds credit = control.note_held_back(milliseconds(99));
  for (int i = 0; i < kBatches; ++i) settle(control, {}, credit);
  settle(control, microseconds(900), credit);
  EXPECT_EQ(control.statistics().margin.count(), 0) << "a batch of 1 ms in 512";
  EXPECT_EQ(control.statistics().caused_idle, microseconds(900)) << "counted all the same";
  settle(control, microseconds(900), credit);
  EXPECT_GT(control.statistics().margin, microseconds(790)) << "0.1 ms were left";
  EXPECT_LE(control.statistics().margin, microseconds(800));

  RunAheadControl idle;
  const nanoseconds much = idle.note_held_back(milliseconds(99));
  for (int i = 0; i < 100 * kBatches; ++i) settle(idle, {}, much);
  settle(idle, milliseconds(9), much);
  EXPECT_EQ(idle.statistics().margin, milliseconds(5)) << "no more than four batches are kept";
}

TEST(RunAheadControl, AStreamCouldHaveEndedEarlierByItsPausesButNotByMoreThanTheStalls) {
  RunAheadControl control;
  nanoseconds earlier{};
  settle(control, {}, {});
  const nanoseconds credit = control.note_held_back(milliseconds(6));
  EXPECT_EQ(control.could_end_earlier(earlier, milliseconds(2), credit), milliseconds(2));
  EXPECT_EQ(control.could_end_earlier(earlier, {}, credit), milliseconds(2)) << "runs on";
  EXPECT_EQ(control.could_end_earlier(earlier, milliseconds(1), credit), milliseconds(3));
  EXPECT_EQ(control.could_end_earlier(earlier, milliseconds(9), credit), milliseconds(6));
  settle(control, milliseconds(4), credit);
  EXPECT_EQ(control.could_end_earlier(earlier, milliseconds(9), credit), milliseconds(2))
      << "4 ms were lost: it is late by no more than the rest";
  control.note_synchronized(credit);
  const nanoseconds more = control.note_held_back(milliseconds(3));
  EXPECT_EQ(control.could_end_earlier(earlier, {}, more).count(), 0)
      << "the stalls before cost nothing";
  EXPECT_EQ(control.could_end_earlier(earlier, milliseconds(1), more), milliseconds(1));
}

TEST(RunAheadControl, PausesOfLongAgoCountUpToTheTimeOfEightBatches) {
  RunAheadControl control;
  nanoseconds earlier{};
  const nanoseconds credit = control.note_held_back(milliseconds(500));
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(control.could_end_earlier(earlier, milliseconds(1), credit).count(),
              nanoseconds(milliseconds(1 + std::min(i, 8))).count())
        << "its own pause, and the eight batches' time before it";
    settle(control, {}, credit);
  }
  const nanoseconds caused = control.statistics().caused_idle;
  for (int i = 0; i < 100; ++i) {
    const nanoseconds most = control.could_end_earlier(earlier, {}, credit);
    settle(control, std::min(nanoseconds(milliseconds(1)), most), credit);
  }
  EXPECT_EQ(control.statistics().caused_idle - caused, milliseconds(8));
}

TEST(RunAheadControl, AStallAfterABatchWasAdmittedIsNotToBlameForItsGap) {
  RunAheadControl control;
  const nanoseconds before = control.note_held_back({});
  (void)control.note_held_back(milliseconds(9));
  settle(control, milliseconds(2), before);
  EXPECT_EQ(control.statistics().caused_idle.count(), 0);
}

TEST(RunAheadControl, WhatAFrontendThatWaitsForTheDeviceWasHeldBackCostNothing) {
  RunAheadControl control;
  const nanoseconds credit = control.note_held_back(milliseconds(5));
  control.note_synchronized(milliseconds(4));
  settle(control, milliseconds(3), credit);
  EXPECT_EQ(control.statistics().caused_idle, milliseconds(1)) << "of another frontend";
  control.note_synchronized(milliseconds(100));
  settle(control, milliseconds(3), control.note_held_back(milliseconds(2)));
  EXPECT_EQ(control.statistics().caused_idle, milliseconds(3));
}

TEST(Invariant8, AHostThatIsNeverHeldBackNeverMovesTheTarget) {
  RunAheadControl control;
  for (int i = 1; i < 2000; ++i) {
    control.note_unused({});
    settle(control, milliseconds(i % 70), control.note_held_back({}));
  }
  EXPECT_EQ(control.target().time, nanoseconds(0));
  EXPECT_EQ(control.statistics().most, nanoseconds(0));
}

/// Ends a window in which `unused` was always left.
void end_window(RunAheadControl& control, nanoseconds credit, nanoseconds unused) {
  const nanoseconds margin = control.statistics().margin;
  const auto batches = std::max<std::int64_t>(
      RunAheadControl::kWindowBatches, margin * RunAheadControl::kWindowMargins / milliseconds(1));
  for (std::int64_t i = 0; i < batches; ++i) {
    control.note_unused(unused);
    settle(control, {}, credit);
  }
}

TEST(RunAheadControl, TheMarginFallsByHalfOfTheQueueThatNobodyNeeded) {
  RunAheadControl control;
  const nanoseconds credit = control.note_held_back(milliseconds(8));
  settle(control, milliseconds(8), credit);
  control.note_unused(milliseconds(3));
  end_window(control, credit, milliseconds(6));
  EXPECT_EQ(control.statistics().margin, microseconds(6500)) << "3 ms was the least";
  end_window(control, credit, milliseconds(6));
  EXPECT_EQ(control.statistics().margin, microseconds(3500));
  end_window(control, credit, milliseconds(60));
  EXPECT_EQ(control.statistics().margin, microseconds(1750)) << "half of itself";
  EXPECT_EQ(control.statistics().most, milliseconds(8));
}

TEST(RunAheadControl, TheMarginStaysWhereAllOfTheQueueIsNeededOnceInAWindow) {
  RunAheadControl control;
  const nanoseconds credit = control.note_held_back(milliseconds(8));
  settle(control, milliseconds(8), credit);
  control.note_unused({});
  end_window(control, credit, milliseconds(6));
  EXPECT_EQ(control.statistics().margin, milliseconds(8));
}

TEST(RunAheadControl, ALeadThatHoldsNobodyBackFallsAsTheMarginDoes) {
  RunAheadControl control;
  control.note_lead(milliseconds(300));  // once: 2 ms batches, and a budget for a hundred of them
  const auto windows = [&](int count) {
    for (int batch = 0; batch < count * 30'000; ++batch) {
      control.note_unused(milliseconds(196));
      settle(control, {}, {});
    }
  };
  for (std::uint64_t i = 0; i < RunAheadControl::kWindowBatches; ++i) settle(control, {}, {});
  ASSERT_EQ(control.statistics().lead, milliseconds(300)) << "the window has a sample";
  windows(1);
  EXPECT_EQ(control.statistics().lead, milliseconds(202)) << "196 ms were left unused";
  windows(1);
  EXPECT_LT(control.statistics().lead, milliseconds(110));
  control.note_lead(milliseconds(1));
  EXPECT_EQ(control.statistics().lead, milliseconds(1)) << "the sample of long ago is forgotten";
}

TEST(RunAheadControl, ALeadWithSamplesDoesNotFallByItself) {
  RunAheadControl control;
  for (int batch = 0; batch < 3000; ++batch) {
    if (batch % 200 == 0) control.note_lead(milliseconds(5));
    control.note_unused(milliseconds(6));
    settle(control, {}, {});
  }
  EXPECT_EQ(control.statistics().lead, milliseconds(5));
}

TEST(RunAheadControl, AllFallsTogetherCostAtMostHalfAPercentOfTheTime) {
  // Whatever the gaps and queues: what the margin grew by is what is left of it and what it fell
  // by, and a fall is at most half of it in a window of a hundred.
  std::mt19937_64 random(1);
  for (int run = 0; run < 50; ++run) {
    RunAheadControl control;
    nanoseconds time{};
    for (int i = 0; i < 20'000; ++i) {
      const nanoseconds device_time(1 + random() % 1'000'000);
      const nanoseconds gap(random() % 16 == 0 ? random() % 4'000'000 : 0);
      time += device_time;
      control.note_unused(nanoseconds(random() % 8'000'000));
      control.note_settled({.device_time = device_time,
                            .gap = gap,
                            .credit = control.note_held_back(nanoseconds(random() % 1'000'000))});
    }
    const RunAheadStatistics now = control.statistics();
    EXPECT_LE(now.caused_idle.count(), now.margin.count() + time.count() / 200);
  }
}

}  // namespace
}  // namespace weir
