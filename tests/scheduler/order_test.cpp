// The order of operations over streams and frontend threads, and what a closure may not do.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "rig.hpp"

namespace weir {
namespace {

using namespace testing;  // NOLINT: the fakes and helpers of the suite
using ::testing::Each;

TEST(Order, AWriterWaitsForTheReadersOnOtherStreams) {
  Rig rig;
  const Tensor tensor = rig.filled(kib(4), 1);
  Gate& gate = rig.gate();
  std::atomic<float> read = 0;
  rig->submit("read", {.reads = {tensor}, .stream = StreamRole::kCompute2},
              [&](Stream&, Inputs in, Outputs) {
                gate.pass();
                read = in[0].back();
              });
  gate.await_arrival();
  rig->submit("write", {.writes = {tensor}}, fill(2));
  EXPECT_FALSE(rig->reached(rig->written(tensor)));
  gate.open();
  rig->wait(tensor);
  EXPECT_EQ(read, 1);
  EXPECT_THAT(rig->read(tensor), Each(2));
}

TEST(Order, AReaderWaitsForTheWriterOnAnotherStream) {
  Rig rig;
  Gate& gate = rig.hold(StreamRole::kCopyIn);
  const Tensor tensor = rig.filled(kib(4), 7, StreamRole::kCopyIn);
  const Tensor out = rig->empty(shape_of(kib(4)));
  rig->submit("read", {.reads = {tensor}, .writes = {out}}, add(1));
  EXPECT_FALSE(rig->reached(rig->written(out)));
  gate.open();
  EXPECT_THAT(rig->read(out), Each(8));
}

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

TEST(Order, AThousandOperationsOnFourStreamsGiveTheSequentialResult) {
  Rig rig;
  std::vector<float> model(8, 1.0F);
  std::vector<Tensor> tensors;
  for (std::size_t i = 0; i < model.size(); ++i) tensors.push_back(rig.filled(kib(4), 1));
  for (std::size_t step = 0; step < 1000; ++step) {
    const std::size_t to = step * 5 % model.size();
    const std::size_t from = step * 3 % model.size();
    const StreamRole role = kAllRoles.at(step * 7 % kStreamRoles);
    rig->submit("mix", {.reads = {tensors[from]}, .writes = {tensors[to]}, .stream = role}, add(1));
    model[to] = model[from] + 1;
  }
  for (std::size_t i = 0; i < model.size(); ++i) {
    EXPECT_THAT(rig->read(tensors[i]), Each(model[i])) << i;
  }
}

}  // namespace
}  // namespace weir
