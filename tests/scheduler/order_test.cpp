// The order of operations over streams and frontend threads, and what a closure may not do.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "rig.hpp"

namespace weir {
namespace {

using namespace testing;  // NOLINT: the fakes and helpers of the suite
using ::testing::Each;

TEST(Order, ReadersOnTwoStreamsOverlap) {
  Rig rig;
  const Tensor tensor = rig.filled(kib(4), 1);
  Gate& first = rig.gate();
  Gate& second = rig.gate();
  rig->submit("first", {.reads = {tensor}}, pass(first));
  rig->submit("second", {.reads = {tensor}, .stream = StreamRole::kCompute2}, pass(second));
  first.await_arrival();
  second.await_arrival();  // both are inside at once, or this does not return
}

TEST(Order, TheHostNeverWaitsForAnEvent) {
  Rig rig;
  rig.hold(StreamRole::kCopyIn);
  Tensor tensor = rig.filled(kib(4), 1, StreamRole::kCopyIn);
  for (int i = 0; i < 100; ++i) {
    const StreamRole role = kAllRoles.at(static_cast<std::size_t>(i) % kStreamRoles);
    Tensor next = rig->empty(shape_of(kib(4)));
    rig->submit("step", {.reads = {tensor}, .writes = {next}, .stream = role}, add(1));
    tensor = std::move(next);
  }
  EXPECT_EQ(rig.backend.waits(), 0U);
}

/// With closures that run late, as on the cpu device, and closures that run at once.
class OrderOfThreads : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Closures, OrderOfThreads, ::testing::Bool(),
                         [](const auto& at_once) { return at_once.param ? "AtOnce" : "Late"; });

TEST_P(OrderOfThreads, IsOneThatAllOfThemSee) {
  Rig rig({.at_once = GetParam()});
  const Tensor counter = rig.filled(kib(4), 0);
  constexpr int kThreads = 4;
  constexpr int kEach = 200;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&rig, own = counter, t] {
      for (int i = 0; i < kEach; ++i) {
        const StreamRole role = kAllRoles.at(static_cast<std::size_t>(t + i) % kStreamRoles);
        rig->submit("add", {.reads = {own}, .writes = {own}, .stream = role}, add(1));
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_THAT(rig->read(counter), Each(kThreads * kEach));
}

TEST_P(OrderOfThreads, ThatRaceForTheFirstWriteOfATensorMakesNoDifference) {
  Rig rig({.budget = mib(1), .at_once = GetParam()});
  for (int round = 0; round < 200; ++round) {
    const Tensor tensor = rig->empty(shape_of(kib(64)));
    std::vector<std::thread> threads;
    for (const StreamRole role : {StreamRole::kCompute, StreamRole::kCopyIn}) {
      threads.emplace_back([&rig, own = tensor, role] {
        rig->submit("write", {.writes = {own}, .stream = role}, fill(5));
      });
    }
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(rig.pool.statistics().allocated.current, kib(64))
        << "one of them gave its block back";
    EXPECT_THAT(rig->read(tensor), Each(5));
  }
  expect_idle(rig);
}

TEST(Order, WaitIsForOneTensorAlone) {
  Rig rig;
  rig.hold(StreamRole::kCompute2);
  const Tensor late = rig.filled(kib(4), 1, StreamRole::kCompute2);
  const Tensor soon = rig.filled(kib(4), 2);
  rig->wait(soon);
  EXPECT_THAT(rig->read(soon), Each(2));
  EXPECT_FALSE(rig->reached(rig->written(late)));
}

TEST(Order, WhatIsEnqueuedIsCountedAndWhatIsRefusedIsNot) {
  Rig rig;
  EXPECT_EQ(rig->operations(), 0U);
  const Tensor tensor = rig.filled(kib(4), 1);
  EXPECT_EQ(rig->operations(), 1U);
  (void)rig->read(tensor);
  EXPECT_EQ(rig->operations(), 2U);
  const Tensor unwritten = rig->empty(shape_of(kib(4)));
  EXPECT_THROW(rig->submit("read", {.reads = {unwritten}}, nothing()), UsageError);
  EXPECT_EQ(rig->operations(), 2U);
}

}  // namespace
}  // namespace weir
