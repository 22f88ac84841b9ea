// Programs that run ahead of a slow device until its memory is full, each in its own process:
// without a preloaded library, and with libweir.so.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "support/child_process.hpp"
#include "trainer/temporary_directory.hpp"

namespace weir::testing {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;
/// Room for nine batches of 1 MiB and a little, of twenty-four.
constexpr const char* kMemory = "10M";

Finished alone(const Words& words) {
  return ChildProcess(words, {.environment = {{"WEIR_STANDIN_MEMORY", kMemory}}}).wait();
}

Finished swapped_in(const Words& words, Variables variables = {}) {
  variables.emplace("WEIR_STANDIN_MEMORY", kMemory);
  variables.emplace("LD_PRELOAD", SWAP_IN);
  return ChildProcess(words, {.environment = std::move(variables)}).wait();
}

/// The device's part of the program's summary.
Json summary_of(const Words& words, Variables variables) {
  const TemporaryDirectory folder;
  const std::string path = folder.file("summary.json");
  variables.emplace("WEIR_SUMMARY", path);
  const Finished program = swapped_in(words, std::move(variables));
  EXPECT_EQ(program.exit_code, 0) << program.err;
  return Json::parse(read_file(path)).at("devices").at(0);
}

std::uint64_t peak_reserved(const Json& device) {
  return device.at("pool").at("reserved_bytes").at("peak").get<std::uint64_t>();
}

std::size_t reports_in(const std::string& text) {
  std::size_t count = 0;
  for (auto at = text.find("out of memory:"); at != std::string::npos;
       at = text.find("out of memory:", at + 1)) {
    ++count;
  }
  return count;
}

void expect_finished(const Finished& program) {
  EXPECT_EQ(program.exit_code, 0) << program.err;
  EXPECT_EQ(program.out, "24 batches, right\n");
  EXPECT_EQ(program.err, "");
}

TEST(SwapInRunAhead, DiesAlone) {
  const Finished program = alone({"streamed"});
  EXPECT_EQ(program.exit_code, 3) << program.out;
  EXPECT_THAT(program.err, HasSubstr("cudaMallocAsync"));
  EXPECT_THAT(program.err, HasSubstr("cudaErrorMemoryAllocation"));
}

TEST(SwapInRunAhead, FinishesAtTheSameMemoryByDefault) {
  expect_finished(swapped_in({"streamed"}));
}

TEST(SwapInRunAhead, FinishesUnderPoliciesThatWait) {
  for (const char* policy : {"throttled", "backstop"}) {
    expect_finished(swapped_in({"streamed"}, {{"WEIR_POLICY", policy}}));
  }
}

TEST(SwapInRunAhead, DiesUnderAPolicyThatDoesNotWait) {
  const Finished program = swapped_in({"streamed"}, {{"WEIR_POLICY", "unbounded"}});
  EXPECT_EQ(program.exit_code, 3);
  EXPECT_THAT(program.err, HasSubstr("cudaErrorMemoryAllocation"));
  EXPECT_THAT(program.err, HasSubstr("not allowed by the policy"));
  EXPECT_EQ(reports_in(program.err), 1) << program.err;
}

TEST(SwapInRunAhead, FinishesUnderEveryPolicyThatWaitsWhenBatchesAreMarked) {
  for (const char* policy : {"throttled", "backstop", "barrier"}) {
    expect_finished(swapped_in({"streamed", "marked"}, {{"WEIR_POLICY", policy}}));
  }
}

TEST(SwapInRunAhead, MarksDoNothingWithoutTheLibrary) {
  EXPECT_EQ(alone({"streamed", "marked"}).exit_code, 3);
}

TEST(SwapInRunAhead, AFreeThatWaitsForTheDeviceAloneDoesNotWaitHere) {
  expect_finished(alone({"freed"}));
  const Json device = summary_of({"freed"}, {});
  // One block would suffice for a program whose frees wait.
  EXPECT_GT(peak_reserved(device), 3U << 20U);
}

TEST(SwapInRunAhead, AFreeWaitsWhereItIsToldTo) {
  const Json device = summary_of({"freed"}, {{"WEIR_SYNC_FREE", "1"}});
  EXPECT_LT(peak_reserved(device), 3U << 20U);
}

/// No wait of ours releases what the program itself keeps, unless it marks where a batch begins.
TEST(SwapInRunAhead, AListOfBuffersInUseNeedsMarkedBatches) {
  EXPECT_EQ(alone({"listed"}).exit_code, 3);
  EXPECT_EQ(swapped_in({"listed"}).exit_code, 3);
  expect_finished(swapped_in({"listed", "marked"}));
}

TEST(SwapInRunAhead, MarkedBatchesReserveLess) {
  const Variables two{{"WEIR_RUN_AHEAD", "2"}};
  const Json marked = summary_of({"streamed", "marked"}, two);
  const Json unmarked = summary_of({"streamed"}, two);
  EXPECT_LE(peak_reserved(marked), 5U << 20U);
  EXPECT_LT(peak_reserved(marked), peak_reserved(unmarked));
  EXPECT_EQ(marked.at("batches_marked"), 24);
  EXPECT_GT(marked.at("batches").at("count"), 0);
  EXPECT_EQ(unmarked.at("batches_marked"), 0);
}

TEST(SwapInRunAhead, WhatNeedsMoreIsToldSoAndGoesOnWithLess) {
  EXPECT_EQ(alone({"needs-more"}).exit_code, 0);
  const Finished program = swapped_in({"needs-more"});
  EXPECT_EQ(program.exit_code, 0) << program.err;
  EXPECT_EQ(program.out, "1 batches, right\n");
  EXPECT_EQ(reports_in(program.err), 1) << program.err;
  EXPECT_THAT(program.err, HasSubstr("asked 1 MiB"));
}

}  // namespace
}  // namespace weir::testing
