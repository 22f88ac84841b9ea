// A batch's stop token ends each of its waits for memory.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <optional>
#include <stop_token>
#include <thread>
#include <vector>

#include "rig.hpp"

namespace weir {
namespace {

using namespace testing;  // NOLINT: the fakes and helpers of the suite
using ::testing::Each;
using ::testing::HasSubstr;

constexpr Bytes kWholeBudget = kib(64);  // also a block of small tensors

/// Frees all memory while the second stream, which is held, uses it.
void fill_with_awaiting(Rig& rig, Bytes each) {
  std::vector<Tensor> tensors;
  for (Bytes made; made < kWholeBudget; made += each) tensors.push_back(rig.filled(each, 1));
  for (const Tensor& tensor : tensors) {
    rig->submit("use", {.reads = {tensor}, .stream = StreamRole::kCompute2}, nothing());
  }
}

/// Requests `bytes` in a batch on its own thread. Returns the result of the wait.
std::future<std::string> ask_in_a_batch(Rig& rig, Bytes bytes, const std::stop_token& stop) {
  return std::async(std::launch::async, [&rig, bytes, stop]() -> std::string {
    try {
      const Batch batch = rig->begin_batch("asks", {.hint = Bytes{}, .stop = stop});
      (void)rig.filled(bytes, 2, StreamRole::kCompute, "wanted");
      return "served";
    } catch (const Cancelled& cancelled) {
      return cancelled.what();
    }
  });
}

class Cancel : public ::testing::TestWithParam<Bytes> {};

TEST_P(Cancel, EndsAWaitForTheDevice) {
  Rig rig({.budget = kWholeBudget});
  Gate& gate = rig.hold(StreamRole::kCompute2);
  fill_with_awaiting(rig, GetParam());
  std::stop_source stop;
  auto asks = ask_in_a_batch(rig, GetParam(), stop.get_token());
  rig.backend.await_waits(1);
  stop.request_stop();
  EXPECT_EQ(asks.get(), "wanted: the wait for memory was cancelled");
  EXPECT_EQ(rig->admission().open, 0U);
  gate.open();
  expect_idle(rig);
  EXPECT_THAT(rig->read(rig.filled(kWholeBudget, 3)), Each(3));
}

INSTANTIATE_TEST_SUITE_P(OfBlocksAndSlots, Cancel,
                         ::testing::Values(kWholeBudget, SlabAllocator::kLargest),
                         [](const auto& size) { return std::to_string(size.param.count); });

TEST(CancelInLine, EndsATurnBehindAnotherRequestAndTheNextComesUp) {
  Rig rig({.budget = kWholeBudget});
  Gate& gate = rig.hold(StreamRole::kCompute2);
  fill_with_awaiting(rig, kWholeBudget);
  std::stop_source stop;
  auto first = ask_in_a_batch(rig, kWholeBudget, {});
  rig.backend.await_waits(1);
  auto second = ask_in_a_batch(rig, kWholeBudget, stop.get_token());
  give_others_a_chance();
  auto third = ask_in_a_batch(rig, kWholeBudget, {});
  give_others_a_chance();
  stop.request_stop();
  EXPECT_THAT(second.get(), HasSubstr("cancelled")) << "with the device still held";
  gate.open();
  EXPECT_EQ(first.get(), "served");
  EXPECT_EQ(third.get(), "served");
  expect_idle(rig);
}

TEST(CancelInTheGrace, EndsIt) {
  Rig rig({.budget = kWholeBudget, .grace = std::chrono::minutes(10)});
  std::optional<Batch> older(rig->begin_batch("older", {.hint = Bytes{}}));
  const Tensor all = rig.filled(kWholeBudget, 1);
  std::stop_source stop;
  auto asks = ask_in_a_batch(rig, kWholeBudget, stop.get_token());
  give_others_a_chance();
  stop.request_stop();
  EXPECT_THAT(asks.get(), HasSubstr("cancelled"));
  EXPECT_EQ(rig->admission().open, 1U);
}

TEST(Grace, OfTheGreatestLengthIsAWaitAndNotAFailureAtOnce) {
  Rig rig({.budget = kWholeBudget, .grace = std::chrono::nanoseconds::max()});
  const Batch older = rig->begin_batch("older", {.hint = Bytes{}});
  Tensor all = rig.filled(kWholeBudget, 1);
  const std::uint64_t before = rig->admission().sleeps;
  auto asks = ask_in_a_batch(rig, kWholeBudget, {});
  while (rig->admission().sleeps == before &&
         asks.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
    std::this_thread::yield();
  }
  all = {};
  EXPECT_EQ(asks.get(), "served");
}

TEST(CancelNamed, AnotherThreadsRequestIsEndedByTheTokenOfTheBatchThatItNames) {
  Rig rig({.budget = kWholeBudget});
  Gate& gate = rig.hold(StreamRole::kCompute2);
  fill_with_awaiting(rig, kWholeBudget);
  std::stop_source stop;
  const Batch batch = rig->begin_batch("train", {.hint = Bytes{}, .stop = stop.get_token()});
  auto loader = std::async(std::launch::async, [&] {
    const std::vector<float> host(kWholeBudget.count / sizeof(float), 1);
    (void)rig->copy_in(batch, host, {host.size()});
  });
  rig.backend.await_waits(1);
  stop.request_stop();
  EXPECT_THROW(loader.get(), Cancelled);
  gate.open();
}

TEST(CancelNot, WhatIsThereIsServedThoughAStopWasRequested) {
  Rig rig;
  std::stop_source stop;
  const Batch batch = rig->begin_batch("train", {.stop = stop.get_token()});
  stop.request_stop();
  EXPECT_THAT(rig->read(rig.filled(kWholeBudget, 4)), Each(4));
}

}  // namespace
}  // namespace weir
