// What `weir run` advises.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tools/weir/run/remarks.hpp"

namespace weir::cli {
namespace {

using ::testing::HasSubstr;

/// Peaks of a pool, in MiB.
struct Peaks {
  unsigned allocated;
  unsigned needed;
  unsigned reserved;
};

preload::PoolSummary pool_of(Peaks peaks, const char* kind, const char* serves = "all") {
  return {.serves = serves,
          .kind = kind,
          .allocated = mib(peaks.allocated),
          .queued = mib(peaks.needed - peaks.allocated),
          .needed = mib(peaks.needed),
          .reserved = mib(peaks.reserved)};
}

preload::Summary summary_of(const char* setting, std::vector<preload::PoolSummary> pools) {
  preload::Summary summary;
  summary.pool = setting;
  summary.policy = "throttled";
  preload::DeviceSummary device;
  device.pools = std::move(pools);
  summary.devices.push_back(device);
  return summary;
}

/// One pool serves all memory.
preload::Summary summary_of(Peaks peaks, const char* kind = "naive") {
  return summary_of(kind, {pool_of(peaks, kind)});
}

std::string advice_of(const preload::Summary& summary) {
  return advice(summary, summary.devices.front());
}

constexpr const char* kByCall = "cuMemAlloc";
constexpr const char* kInOrder = "stream order";
constexpr const char* kLessRunAhead =
    "to take less memory, try --sync-free (if it calls cudaFree) or a smaller --budget";

TEST(Advice, RealFragmentationAsksForTheNextBetterPool) {
  const Peaks peaks{.allocated = 45, .needed = 45, .reserved = 100};
  EXPECT_EQ(advice_of(summary_of(peaks)), "try --pool best_fit: fragmentation is 55.0%");
  EXPECT_EQ(advice_of(summary_of(peaks, "best_fit")), "try --pool paged: fragmentation is 55.0%");
  EXPECT_EQ(advice_of(summary_of(peaks, "paged")), "") << "there is no better one";
}

TEST(Advice, WhatAwaitedTheDeviceIsNoFragmentation) {
  EXPECT_EQ(advice_of(summary_of({.allocated = 60, .needed = 88, .reserved = 100})),
            "try --pool best_fit: fragmentation is 12.0%");
  EXPECT_EQ(advice_of(summary_of({.allocated = 60, .needed = 95, .reserved = 100})), "");
}

TEST(Advice, LittleIsNotWorthAChange) {
  EXPECT_EQ(advice_of(summary_of({.allocated = 91, .needed = 91, .reserved = 100})), "");
  EXPECT_EQ(advice_of(summary_of({.allocated = 1, .needed = 1, .reserved = 2})), "")
      << "the driver's own rounding";
  EXPECT_EQ(advice_of(summary_of({.allocated = 1, .needed = 2, .reserved = 2})), "");
  EXPECT_EQ(advice_of(summary_of({.allocated = 0, .needed = 0, .reserved = 0})), "");
}

// Figures of a loop of cudaMalloc, cudaMemset and cudaFree on the stand-in.
TEST(Advice, WhereMostIsAwaitingNoPoolHelps) {
  EXPECT_EQ(advice_of(summary_of("auto", {pool_of({.allocated = 78, .needed = 341, .reserved = 378},
                                                  "naive", "cuMemAlloc")})),
            kLessRunAhead);
  EXPECT_EQ(advice_of(summary_of({.allocated = 71, .needed = 809, .reserved = 819}, "best_fit")),
            kLessRunAhead);
  EXPECT_EQ(advice_of(summary_of({.allocated = 71, .needed = 638, .reserved = 638}, "paged")),
            kLessRunAhead);
}

TEST(Advice, ForMemoryThatIsQueuedOnOtherStreamsIsABatchOrASmallerBudget) {
  preload::Summary summary = summary_of(
      "auto", {pool_of({.allocated = 20, .needed = 20, .reserved = 20}, "naive", kByCall),
               pool_of({.allocated = 80, .needed = 900, .reserved = 920}, "paged", kInOrder)});
  EXPECT_EQ(advice_of(summary),
            "to take less memory, mark batches (--batch-range), or try a smaller --budget");
  summary.devices.front().batches_marked = 10;
  EXPECT_EQ(advice_of(summary), "to take less memory, try a smaller --budget");
}

TEST(Advice, NamesTheMemoryThatHasTheHoles) {
  const auto whole = pool_of({.allocated = 50, .needed = 50, .reserved = 50}, "paged", kInOrder);
  const auto holes = pool_of({.allocated = 45, .needed = 45, .reserved = 100}, "naive", kByCall);
  EXPECT_EQ(advice_of(summary_of("auto", {holes, whole})),
            "try --pool paged: fragmentation of cuMemAlloc is 55.0%")
      << "best_fit would be worse for the memory in stream order";
  EXPECT_EQ(advice_of(summary_of("auto", {holes})), "try --pool best_fit: fragmentation is 55.0%");
}

/// What a program's memory is like in whatever pool: by cuMemAlloc and in stream order, if it uses
/// that.
struct Program {
  std::array<std::optional<Peaks>, 2> memory;
  bool maps_pages;
  bool fails;
};
constexpr std::array kMemory{kByCall, kInOrder};

std::string kind_for(std::size_t memory, const std::string& setting, const Program& program) {
  if (setting != "auto") return setting;
  if (memory == 0) return "naive";
  return program.maps_pages ? "paged" : "best_fit";
}

preload::Summary run(const Program& program, const std::string& setting) {
  std::vector<preload::PoolSummary> pools;
  for (std::size_t i = 0; i < kMemory.size(); ++i) {
    if (!program.memory.at(i)) continue;
    const auto pool = pool_of(*program.memory.at(i), kind_for(i, setting, program).c_str(),
                              setting == "auto" ? kMemory.at(i) : "all");
    if (setting == "auto" || pools.empty()) {
      pools.push_back(pool);
    } else {
      for (Bytes preload::PoolSummary::*peak :
           {&preload::PoolSummary::allocated, &preload::PoolSummary::queued,
            &preload::PoolSummary::needed, &preload::PoolSummary::reserved}) {
        pools.front().*peak += pool.*peak;
      }
    }
  }
  preload::Summary summary = summary_of(setting.c_str(), std::move(pools));
  summary.devices.front().pool.failures = program.fails ? 1 : 0;
  return summary;
}

/// Follows the advice until it names no pool. Returns how often it did.
int follow(const Program& program, std::string setting) {
  constexpr std::string_view kTry = "try --pool ";
  std::array<std::set<std::string>, kMemory.size()> before;
  for (int advised = 0;; ++advised) {
    const std::string said = advice_of(run(program, setting));
    if (!said.starts_with(kTry)) return advised;
    const std::string next = said.substr(kTry.size(), said.find(':') - kTry.size());
    bool helps = false;
    for (std::size_t i = 0; i < kMemory.size(); ++i) {
      if (!program.memory.at(i)) continue;
      const std::string now = kind_for(i, setting, program);
      before.at(i).insert(now);
      helps =
          helps || (now != next && program.memory.at(i)->needed < program.memory.at(i)->reserved);
      EXPECT_TRUE(now == next || !before.at(i).contains(next)) << kMemory.at(i) << " had " << next;
    }
    EXPECT_TRUE(helps) << said;
    if (!helps || ::testing::Test::HasFailure()) return advised;
    setting = next;
  }
}

TEST(Advice, FollowedToItsEndNeverReturnsToAPoolAndNamesNoneForQueuedMemory) {
  const std::array<std::optional<Peaks>, 5> causes{
      std::nullopt, Peaks{.allocated = 100, .needed = 100, .reserved = 100},
      Peaks{.allocated = 45, .needed = 45, .reserved = 100},   // holes
      Peaks{.allocated = 10, .needed = 100, .reserved = 100},  // queued
      Peaks{.allocated = 10, .needed = 55, .reserved = 100}};  // both
  int advised = 0;
  for (const char* setting : {"auto", "unpooled", "naive", "round", "best_fit", "paged"}) {
    for (std::size_t each = 1; each < causes.size() * causes.size() * 4; ++each) {
      const Program program{.memory = {causes.at(each / 4 % 5), causes.at(each / 20)},
                            .maps_pages = each % 2 != 0,
                            .fails = each / 2 % 2 != 0};
      SCOPED_TRACE(std::string(setting) + ", program " + std::to_string(each));
      advised += follow(program, setting);
      ASSERT_FALSE(HasFailure());
    }
  }
  EXPECT_GT(advised, 0);
}

TEST(Advice, AnUnpooledProgramIsSentToNoPool) {
  EXPECT_EQ(advice_of(summary_of({.allocated = 80, .needed = 143, .reserved = 143}, "unpooled")),
            "");
  EXPECT_EQ(advice_of(summary_of({.allocated = 71, .needed = 143, .reserved = 143}, "unpooled")),
            kLessRunAhead);
}

TEST(Advice, NamesNoFlagThatIsSetOrWouldUndoTheRunAhead) {
  const Peaks peaks{.allocated = 78, .needed = 341, .reserved = 378};
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
  preload::Summary summary = summary_of({.allocated = 64, .needed = 68, .reserved = 70});
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
  preload::Summary summary = summary_of({.allocated = 20, .needed = 98, .reserved = 100});
  summary.devices.front().pool.failures = 3;
  EXPECT_EQ(advice_of(summary),
            "try a larger --budget, or a smaller batch: 3 requests found no memory");
  summary.policy = "unbounded";
  EXPECT_EQ(advice_of(summary), "try --policy throttled: 3 requests found no memory");
  summary = summary_of({.allocated = 91, .needed = 91, .reserved = 100});
  summary.policy = "unbounded";
  summary.devices.front().pool.failures = 1;
  EXPECT_THAT(advice_of(summary), HasSubstr("larger --budget"))
      << "nothing was freed that a wait would bring back";
}

TEST(WithoutEffect, IsSaidOfWhatCountsBatchesWhereNoneIsMarked) {
  preload::Summary summary = summary_of({.allocated = 1, .needed = 1, .reserved = 2});
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
