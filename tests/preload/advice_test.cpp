// What `weir run` advises.

#include "tools/weir/run/advice.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::cli {
namespace {

using ::testing::HasSubstr;

/// Peaks of a device, in MiB.
struct Peaks {
  unsigned allocated;
  unsigned held;
  unsigned reserved;
};

preload::Summary summary_of(Peaks peaks, const char* pool = "naive") {
  preload::Summary summary;
  summary.pool = pool;
  summary.policy = "throttled";
  preload::DeviceSummary device;
  device.pool.allocated.peak = mib(peaks.allocated);
  device.pool.held.peak = mib(peaks.held);
  device.pool.reserved.peak = mib(peaks.reserved);
  summary.devices.push_back(device);
  return summary;
}

std::string advice_of(const preload::Summary& summary) {
  return advice(summary, summary.devices.front());
}

constexpr const char* kLessRunAhead =
    "to take less memory, try --sync-free (if it calls cudaFree) or a smaller --budget";

TEST(Advice, RealFragmentationAsksForTheNextBetterPool) {
  const Peaks peaks{.allocated = 45, .held = 45, .reserved = 100};
  EXPECT_EQ(advice_of(summary_of(peaks)), "try --pool best_fit: fragmentation is 55.0%");
  EXPECT_EQ(advice_of(summary_of(peaks, "best_fit")), "try --pool paged: fragmentation is 55.0%");
  EXPECT_EQ(advice_of(summary_of(peaks, "paged")), "") << "there is no better one";
}

TEST(Advice, WhatAwaitedTheDeviceIsNoFragmentation) {
  EXPECT_EQ(advice_of(summary_of({.allocated = 60, .held = 88, .reserved = 100})),
            "try --pool best_fit: fragmentation is 12.0%");
  EXPECT_EQ(advice_of(summary_of({.allocated = 60, .held = 95, .reserved = 100})), "");
}

TEST(Advice, LittleIsNotWorthAChange) {
  EXPECT_EQ(advice_of(summary_of({.allocated = 91, .held = 91, .reserved = 100})), "");
  EXPECT_EQ(advice_of(summary_of({.allocated = 1, .held = 1, .reserved = 2})), "")
      << "the driver's own rounding";
  EXPECT_EQ(advice_of(summary_of({.allocated = 1, .held = 2, .reserved = 2})), "");
  EXPECT_EQ(advice_of(summary_of({.allocated = 0, .held = 0, .reserved = 0})), "");
}

// Figures of a loop of cudaMalloc, cudaMemset and cudaFree on the stand-in.
TEST(Advice, WhereMostIsAwaitingNoPoolHelps) {
  EXPECT_EQ(advice_of(summary_of({.allocated = 78, .held = 341, .reserved = 378}, "auto")),
            kLessRunAhead);
  EXPECT_EQ(advice_of(summary_of({.allocated = 71, .held = 809, .reserved = 819}, "best_fit")),
            kLessRunAhead);
  EXPECT_EQ(advice_of(summary_of({.allocated = 71, .held = 638, .reserved = 638}, "paged")),
            kLessRunAhead);
}

TEST(Advice, AnUnpooledProgramIsSentToNoPool) {
  EXPECT_EQ(advice_of(summary_of({.allocated = 80, .held = 143, .reserved = 143}, "unpooled")), "");
  EXPECT_EQ(advice_of(summary_of({.allocated = 71, .held = 143, .reserved = 143}, "unpooled")),
            kLessRunAhead);
}

TEST(Advice, NamesNoFlagThatIsSetOrWouldUndoTheRunAhead) {
  const Peaks peaks{.allocated = 78, .held = 341, .reserved = 378};
  preload::Summary summary = summary_of(peaks);
  summary.settings = {{"sync-free", "1", "WEIR_SYNC_FREE"}};
  EXPECT_EQ(advice_of(summary), "to take less memory, try a smaller --budget");
  summary = summary_of(peaks);
  summary.devices.front().batches_marked = 10;
  EXPECT_EQ(advice_of(summary), "to take less memory, try a smaller --budget");
  summary.policy = "unbounded";  // it would fail in a smaller budget
  EXPECT_EQ(advice_of(summary),
            "to take less memory, try --policy throttled with a smaller --budget");
}

TEST(Advice, ManySecondsOfWaitsForRoomAskForALargerBudget) {
  preload::Summary summary = summary_of({.allocated = 64, .held = 68, .reserved = 70});
  preload::DeviceSummary& device = summary.devices.front();
  device.pool.waits = 4;
  device.pool.waited = std::chrono::milliseconds(900);
  EXPECT_EQ(advice_of(summary), "") << "short waits are what a budget is for";
  device.pool.waited = std::chrono::milliseconds(2667);
  EXPECT_EQ(advice_of(summary),
            "to wait less, try a larger --budget: 2.667 s were waits for room in this one");
  device.pool.waited = {};
  device.paced.total = device.batches_run_ahead.total = std::chrono::seconds(9);
  EXPECT_EQ(advice_of(summary), "") << "waits that a larger budget does not shorten";
}

TEST(Advice, FailuresAskForRoomAndForNoSmallerBudget) {
  preload::Summary summary = summary_of({.allocated = 20, .held = 98, .reserved = 100});
  summary.devices.front().pool.failures = 3;
  EXPECT_EQ(advice_of(summary),
            "try a larger --budget, or a smaller batch: 3 requests found no memory");
  summary.policy = "unbounded";
  EXPECT_EQ(advice_of(summary), "try --policy throttled: 3 requests found no memory");
  summary = summary_of({.allocated = 91, .held = 91, .reserved = 100});
  summary.policy = "unbounded";
  summary.devices.front().pool.failures = 1;
  EXPECT_THAT(advice_of(summary), HasSubstr("larger --budget"))
      << "nothing was freed that a wait would bring back";
}

TEST(WithoutEffect, IsSaidOfWhatCountsBatchesWhereNoneIsMarked) {
  preload::Summary summary = summary_of({.allocated = 1, .held = 1, .reserved = 2});
  EXPECT_EQ(without_effect(summary), "");
  summary.settings = {{"run-ahead", "2", "WEIR_RUN_AHEAD"}};
  EXPECT_EQ(without_effect(summary),
            "no batch was marked, so run-ahead 2 held nothing back (--batch-range marks batches)");
  summary.settings = {{"run-ahead", "20ms", "WEIR_RUN_AHEAD"}};
  EXPECT_EQ(without_effect(summary), "") << "a time paces the launches too";
  summary.settings.clear();
  summary.policy = "barrier";
  EXPECT_THAT(without_effect(summary), HasSubstr("so policy barrier held nothing back"));
  summary.devices.front().batches_marked = 1;
  EXPECT_EQ(without_effect(summary), "");
  summary.devices.clear();
  EXPECT_EQ(without_effect(summary), "") << "it used no device";
}

}  // namespace
}  // namespace weir::cli
