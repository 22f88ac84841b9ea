// Closures that take long to enqueue their work: who must wait for one, and who must not. On the
// cpu device a closure runs late, so nobody waits for it.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <functional>
#include <thread>
#include <vector>

#include "scheduler/device/kit.hpp"
#include "scheduler/scheduler.hpp"
#include "support/gate.hpp"
#include "support/print.hpp"

namespace weir {
namespace {

using testing::Gate;
using testing::kit;

constexpr std::size_t kFloats = 4096;

auto set_bytes_to(unsigned char byte) {
  return [byte](Stream& stream, Inputs, Outputs out) {
    kit().set_bytes(stream, out[0].data(), byte, {out[0].size_bytes()});
  };
}

class SlowClosure : public ::testing::Test {
 protected:
  ~SlowClosure() override {
    gate.open();
    if (submitter.joinable()) submitter.join();
  }
  [[nodiscard]] Tensor made(unsigned char byte, StreamRole role = StreamRole::kCompute) {
    Tensor tensor = scheduler.empty({kFloats}, "made");
    scheduler.submit("set", {.writes = {tensor}, .stream = role}, set_bytes_to(byte));
    return tensor;
  }
  /// Submits, on its own thread, a closure that waits at the gate before it enqueues `then`.
  template <typename Then>
  void submit_slowly(Tensor reads, Tensor writes, StreamRole role, Then then) {
    submitter = std::thread([this, role, then, in = std::move(reads), out = std::move(writes)] {
      std::vector<Tensor> inputs;
      if (in) inputs.push_back(in);
      scheduler.submit("slow", {.reads = inputs, .writes = {out}, .stream = role},
                       [this, then](Stream& stream, Inputs views_in, Outputs views_out) {
                         gate.pass();
                         then(stream, views_in, views_out);
                       });
    });
    gate.await_arrival();
  }
  /// Calls `submit` on another thread, which has to wait for the slow closure, and lets that end.
  void submit_behind(const std::function<void()>& submit) {
    std::atomic<bool> submits = false;
    std::thread other([&] {
      submits = true;
      submit();
    });
    while (!submits) std::this_thread::yield();
    testing::give_others_a_chance();
    gate.open();
    other.join();
    submitter.join();
  }
  void expect_all_bytes(const Tensor& tensor, unsigned char byte) {
    const std::vector<float> values = scheduler.read(tensor);
    const auto value = std::bit_cast<float>(0x01010101U * byte);
    EXPECT_EQ(std::ranges::count(values, value), std::ssize(values));
  }

  Gate gate;  // an operation waits at it: outlives the scheduler
  std::thread submitter;
  Device device{kit().open(mib(8))};
  Pool pool{device.memory()};
  Scheduler scheduler{device, pool};
};

TEST_F(SlowClosure, HoldsNobodyBackWhoSubmitsToAnotherStream) {
  const std::vector<float> host(kFloats, 2.5F);
  const Tensor x = made(0x11);
  submit_slowly({}, scheduler.empty({kFloats}), StreamRole::kCompute, set_bytes_to(0x22));
  const Tensor y = made(0x33, StreamRole::kCompute2);
  const Tensor z = scheduler.copy_in(host, {kFloats});
  expect_all_bytes(y, 0x33);
  expect_all_bytes(x, 0x11);
  EXPECT_EQ(scheduler.read(z), host);
}

TEST_F(SlowClosure, HoldsBackNoCallThatEnqueuesNothingOnItsStream) {
  Tensor x = made(0x11);
  const Tensor y = made(0x22);
  submit_slowly({}, scheduler.empty({kFloats}), StreamRole::kCompute, set_bytes_to(0x22));
  Batch batch = scheduler.begin_batch("train");
  (void)scheduler.empty({kFloats});
  expect_all_bytes(y, 0x22);
  (void)scheduler.reached(scheduler.written(x));
  x = {};
  EXPECT_GT(scheduler.memory_info().cached, Bytes{});
  batch.close();
  EXPECT_EQ(scheduler.barriers().count, 0U);
}

TEST_F(SlowClosure, WhatReadsItsOutputComesBehindIt) {
  const Tensor x = made(0x11);
  scheduler.wait(x);
  submit_slowly({}, x, StreamRole::kCompute, set_bytes_to(0x22));
  const Tensor y = scheduler.empty({kFloats});
  submit_behind([&] {
    scheduler.submit("copy", {.reads = {x}, .writes = {y}, .stream = StreamRole::kCompute2},
                     [](Stream& stream, Inputs in, Outputs out) {
                       stream.copy(out[0].data(), in[0].data(), {in[0].size_bytes()});
                     });
  });
  expect_all_bytes(y, 0x22);
}

TEST_F(SlowClosure, WhatWritesItsInputComesBehindIt) {
  const Tensor x = made(0x11);
  scheduler.wait(x);
  const Tensor y = scheduler.empty({kFloats});
  submit_slowly(x, y, StreamRole::kCompute2, [](Stream& stream, Inputs in, Outputs out) {
    stream.copy(out[0].data(), in[0].data(), {in[0].size_bytes()});
  });
  submit_behind([&] { scheduler.submit("set", {.writes = {x}}, set_bytes_to(0x33)); });
  expect_all_bytes(y, 0x11);
  expect_all_bytes(x, 0x33);
}

TEST_F(SlowClosure, TheNextOneOfItsStreamIsCalledBehindIt) {
  std::atomic<bool> slow_is_done = false;
  submit_slowly({}, scheduler.empty({kFloats}), StreamRole::kCompute,
                [&](Stream&, Inputs, Outputs) { slow_is_done = true; });
  std::atomic<bool> in_order = false;
  submit_behind([&] {
    scheduler.submit("next", {}, [&](Stream&, Inputs, Outputs) { in_order = slow_is_done.load(); });
  });
  scheduler.wait_all();
  EXPECT_TRUE(in_order);
}

TEST_F(SlowClosure, ManyOnAllStreamsGiveTheResultOfOneOrder) {
  constexpr int kThreads = 4;
  constexpr int kEach = 100;
  int count = 0;  // not atomic: the tensor's writes order the steps
  const Tensor counter = made(0);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([this, t, &count, own = counter] {
      for (int i = 0; i < kEach; ++i) {
        const StreamRole role = kAllRoles.at(static_cast<std::size_t>(t + i) % kStreamRoles);
        scheduler.submit("count", {.reads = {own}, .writes = {own}, .stream = role},
                         [&count](Stream& stream, Inputs, Outputs) {
                           kit().step(stream, [&count] { ++count; });
                         });
        (void)made(0x44, role);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  scheduler.wait_all();
  EXPECT_EQ(count, kThreads * kEach);
}

}  // namespace
}  // namespace weir
