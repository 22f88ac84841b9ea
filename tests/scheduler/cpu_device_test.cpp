#include "scheduler/cpu_device.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

#include "allocator/error.hpp"
#include "support/gate.hpp"

namespace weir {
namespace {

using testing::Gate;

class Work final : public Task {
 public:
  explicit Work(std::function<void()> work) : work_(std::move(work)) {}
  void run(Stream& /*stream*/) noexcept override { work_(); }
  void finished(std::chrono::nanoseconds time) noexcept override {
    took = time;
    ++ends;
  }
  std::chrono::nanoseconds took{};
  std::atomic<int> ends = 0;

 private:
  std::function<void()> work_;
};

class CpuDeviceTest : public ::testing::Test {
 protected:
  ~CpuDeviceTest() override { gate.open(); }
  std::uint64_t enqueue(StreamRole role, std::function<void()> work) {
    return device.enqueue(role, *tasks.emplace_back(std::make_unique<Work>(std::move(work))));
  }
  [[nodiscard]] Progress& progress() { return device.progress(); }

  std::vector<std::unique_ptr<Work>> tasks;  // outlive the device, which runs them
  Gate gate;
  CpuDevice device{mib(1)};
};

TEST_F(CpuDeviceTest, WorkRunsLateAndInOrder) {
  std::vector<int> order;
  enqueue(StreamRole::kCompute, [&] { gate.pass(); });
  for (int i = 0; i < 500; ++i) enqueue(StreamRole::kCompute, [&order, i] { order.push_back(i); });
  const Point last = progress().record(device.stream(StreamRole::kCompute));
  gate.await_arrival();
  EXPECT_FALSE(progress().reached(last));
  EXPECT_EQ(progress().passed(last.stream), 0U);
  gate.open();
  EXPECT_TRUE(progress().wait(last, {}));
  ASSERT_EQ(order.size(), 500U);
  for (int i = 0; i < 500; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
  EXPECT_EQ(progress().passed(last.stream), last.sequence);
}

TEST_F(CpuDeviceTest, APointIsPassedOnlyAfterTheTaskHasFinished) {
  for (int i = 0; i < 2000; ++i) {
    const std::uint64_t sequence = enqueue(StreamRole::kCompute, [] {});
    EXPECT_TRUE(progress().wait({device.stream(StreamRole::kCompute), sequence}, {}));
    EXPECT_EQ(tasks.back()->ends, 1);
  }
}

TEST_F(CpuDeviceTest, ThePointOfAnIdleStreamIsPassed) {
  for (const StreamRole role : kAllRoles) {
    EXPECT_TRUE(progress().reached(progress().record(device.stream(role))));
  }
}

TEST_F(CpuDeviceTest, StreamsRunSideBySide) {
  enqueue(StreamRole::kCompute, [&] { gate.pass(); });
  enqueue(StreamRole::kCopyIn, [&] { gate.pass(); });
  gate.await_arrival(2);  // both stand at it at once
}

TEST_F(CpuDeviceTest, MakeWaitOrdersStreamsAndTheHostGoesOn) {
  std::atomic<int> step = 0;
  enqueue(StreamRole::kCopyIn, [&] {
    gate.pass();
    step = 1;
  });
  const Point copied = progress().record(device.stream(StreamRole::kCopyIn));
  progress().make_wait(device.stream(StreamRole::kCompute), copied);
  int seen = -1;
  const std::uint64_t sequence = enqueue(StreamRole::kCompute, [&] { seen = step; });
  gate.await_arrival();
  EXPECT_EQ(seen, -1);
  gate.open();
  EXPECT_TRUE(progress().wait({device.stream(StreamRole::kCompute), sequence}, {}));
  EXPECT_EQ(seen, 1);
}

TEST_F(CpuDeviceTest, AWaitEndsWithTheStopRequest) {
  enqueue(StreamRole::kCompute, [&] { gate.pass(); });
  const Point point = progress().record(device.stream(StreamRole::kCompute));
  std::stop_source stop;
  std::thread stopper([&] { stop.request_stop(); });
  EXPECT_FALSE(progress().wait(point, stop.get_token()));
  stopper.join();
  gate.open();
  EXPECT_TRUE(progress().wait(point, {}));
  EXPECT_TRUE(progress().wait(point, stop.get_token())) << "passed beats stopped";
}

TEST_F(CpuDeviceTest, ManyWaitForDifferentPointsOfOneStream) {
  enqueue(StreamRole::kCompute, [&] { gate.pass(); });
  std::vector<std::thread> waiters;
  std::atomic<int> done = 0;
  for (int i = 0; i < 8; ++i) {
    const Point point{device.stream(StreamRole::kCompute), enqueue(StreamRole::kCompute, [] {})};
    waiters.emplace_back([&, point] {
      EXPECT_TRUE(progress().wait(point, {}));
      EXPECT_TRUE(progress().reached(point));
      ++done;
    });
  }
  gate.open();
  for (auto& waiter : waiters) waiter.join();
  EXPECT_EQ(done, 8);
}

TEST(CpuDevice, DestructionDrainsQueuesThatWaitForEachOther) {
  std::vector<std::unique_ptr<Work>> tasks;
  std::atomic<int> ran = 0;
  {
    CpuDevice device(mib(1));
    for (int i = 0; i < 200; ++i) {
      const StreamRole role = kAllRoles.at(static_cast<std::size_t>(i) % kStreamRoles);
      const StreamRole before = kAllRoles.at(static_cast<std::size_t>(i + 3) % kStreamRoles);
      device.progress().make_wait(device.stream(role),
                                  device.progress().record(device.stream(before)));
      device.enqueue(role, *tasks.emplace_back(std::make_unique<Work>([&] { ++ran; })));
    }
  }
  EXPECT_EQ(ran, 200);
}

TEST_F(CpuDeviceTest, KnowsItsOwnThreads) {
  EXPECT_FALSE(on_device_thread());
  bool inside = false;
  const std::uint64_t sequence =
      enqueue(StreamRole::kCopyOut, [&] { inside = on_device_thread(); });
  EXPECT_TRUE(progress().wait({device.stream(StreamRole::kCopyOut), sequence}, {}));
  EXPECT_TRUE(inside);
}

TEST_F(CpuDeviceTest, CountsTheTimeThatItWorked) {
  const std::uint64_t sequence = enqueue(StreamRole::kCompute, [] {
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(2);
    while (std::chrono::steady_clock::now() < until) continue;
  });
  EXPECT_TRUE(progress().wait({device.stream(StreamRole::kCompute), sequence}, {}));
  EXPECT_GE(device.busy(StreamRole::kCompute), std::chrono::milliseconds(2));
  EXPECT_EQ(device.busy(StreamRole::kCompute), tasks.back()->took);
  EXPECT_EQ(device.busy(StreamRole::kCopyIn).count(), 0);
}

TEST_F(CpuDeviceTest, RefusesAStreamOfAnotherDevice) {
  EXPECT_THROW((void)progress().record(StreamId::next()), UsageError);
  EXPECT_THROW((void)progress().passed(StreamId::next()), UsageError);
}

TEST(OpenDevice, KnowsTheCpuAndNothingElse) {
  Device device = open_device("cpu", {.memory = mib(3)});
  EXPECT_EQ(device.total_memory(), mib(3));
  EXPECT_EQ(device.name(), "cpu");
  EXPECT_THROW((void)open_device("gpu"), UsageError);
  EXPECT_THROW((void)open_device("cpu", {.memory = {UINT64_MAX}}), UsageError);
  EXPECT_EQ(open_device("cpu").total_memory(), default_cpu_memory());
}

}  // namespace
}  // namespace weir
