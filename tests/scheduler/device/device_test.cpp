// The promises of every device, on the kind in this program's kit.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <stop_token>
#include <thread>
#include <vector>

#include "allocator/base/error.hpp"
#include "allocator/timeline/source.hpp"
#include "scheduler/device/kit.hpp"
#include "support/gate.hpp"
#include "support/held.hpp"

namespace weir {
namespace {

using testing::Gate;
using testing::kit;

constexpr Bytes kMemory = mib(8);

class Work final : public Task {
 public:
  explicit Work(std::function<void(Stream&)> body) : body_(std::move(body)) {}
  void run(Stream& stream) noexcept override { body_(stream); }
  void finished(const TaskTime& time) noexcept override {
    took = time.device_time;
    ++ends;
  }
  std::chrono::nanoseconds took{};
  std::atomic<int> ends = 0;

 private:
  std::function<void(Stream&)> body_;
};

class DeviceTest : public ::testing::Test {
 protected:
  ~DeviceTest() override {
    gate.open();
    device.reset();  // before what its work refers to
  }
  std::uint64_t enqueue(StreamRole role, std::function<void(Stream&)> body) {
    return device->enqueue(role, *tasks.emplace_back(std::make_unique<Work>(std::move(body))));
  }
  /// A step of the host in the stream's order.
  std::uint64_t enqueue_step(StreamRole role, const std::function<void()>& step) {
    return enqueue(role, [step](Stream& stream) { kit().step(stream, step); });
  }
  /// The device is at the gate when this returns.
  void hold(StreamRole role) {
    testing::expect_named_while_held();
    enqueue_step(role, [this] { gate.pass(); });
    gate.await_arrival(++held_);
  }
  [[nodiscard]] Progress& progress() { return device->progress(); }
  [[nodiscard]] Point record(StreamRole role) { return progress().record(device->stream(role)); }
  [[nodiscard]] bool wait(StreamRole role) { return progress().wait(record(role), {}); }

  std::vector<std::unique_ptr<Work>> tasks;  // outlive the device, which runs them
  Gate gate;
  std::unique_ptr<DeviceBackend> device = kit().open(kMemory);

 private:
  std::uint64_t held_ = 0;
};

using DeviceWhileHeld = DeviceTest;

/// Steps for one stream while it is held. Few: a GPU's queue has an end (docs/cuda.md), and a call
/// that finds it full waits for the device.
constexpr int kSteps = 20;

TEST_F(DeviceWhileHeld, WorkRunsLateAndInOrder) {
  std::vector<int> order;
  hold(StreamRole::kCompute);
  for (int i = 0; i < kSteps; ++i) {
    enqueue_step(StreamRole::kCompute, [&order, i] { order.push_back(i); });
  }
  const Point last = record(StreamRole::kCompute);
  EXPECT_FALSE(progress().reached(last));
  EXPECT_EQ(progress().passed(last.stream), 0U);
  EXPECT_EQ(tasks.front()->ends, 0);
  gate.open();
  EXPECT_TRUE(progress().wait(last, {}));
  ASSERT_EQ(order.size(), std::size_t{kSteps});
  for (int i = 0; i < kSteps; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
  // A mark to sleep on may follow.
  EXPECT_GE(progress().passed(last.stream), last.sequence);
}

TEST_F(DeviceTest, APointIsPassedOnlyAfterTheTaskHasFinished) {
  for (int i = 0; i < 500; ++i) {
    const std::uint64_t sequence = enqueue_step(StreamRole::kCompute, [] {});
    EXPECT_TRUE(progress().wait({device->stream(StreamRole::kCompute), sequence}, {}));
    EXPECT_EQ(tasks.back()->ends, 1);
  }
}

TEST_F(DeviceTest, ThePointOfAnIdleStreamIsPassed) {
  for (const StreamRole role : kAllRoles) EXPECT_TRUE(progress().reached(record(role)));
}

TEST_F(DeviceWhileHeld, MakeWaitOrdersStreamsAndTheHostGoesOn) {
  std::atomic<int> step = 0;
  hold(StreamRole::kCopyIn);
  enqueue_step(StreamRole::kCopyIn, [&] { step = 1; });
  progress().make_wait(device->stream(StreamRole::kCompute), record(StreamRole::kCopyIn));
  std::atomic<int> seen = -1;
  enqueue_step(StreamRole::kCompute, [&] { seen = step.load(); });
  testing::give_others_a_chance();
  EXPECT_EQ(seen, -1);
  gate.open();
  EXPECT_TRUE(wait(StreamRole::kCompute));
  EXPECT_EQ(seen, 1);
}

TEST_F(DeviceWhileHeld, APointRecordedAfterAWaitIsPassedAfterWhatIsWaitedFor) {
  hold(StreamRole::kCopyIn);
  const Point copied = record(StreamRole::kCopyIn);
  progress().make_wait(device->stream(StreamRole::kCompute), copied);
  // No work was enqueued behind the wait: memory handed over to this stream and freed on it again
  // must not look free to a third one.
  const Point behind = record(StreamRole::kCompute);
  testing::give_others_a_chance();
  EXPECT_FALSE(progress().reached(behind));
  gate.open();
  EXPECT_TRUE(progress().wait(behind, {}));
  EXPECT_TRUE(progress().wait(copied, {}));
}

TEST_F(DeviceWhileHeld, AWaitForAnEarlierPointDoesNotHoldBackForLaterWork) {
  enqueue_step(StreamRole::kCopyIn, [] {});
  const Point early = record(StreamRole::kCopyIn);
  EXPECT_TRUE(progress().wait(early, {}));
  hold(StreamRole::kCopyIn);
  progress().make_wait(device->stream(StreamRole::kCompute), early);
  EXPECT_TRUE(wait(StreamRole::kCompute)) << "with the copies held";
}

TEST_F(DeviceWhileHeld, AWaitEndsWithTheStopRequest) {
  hold(StreamRole::kCompute);
  const Point point = record(StreamRole::kCompute);
  std::stop_source stop;
  std::thread stopper([&] { stop.request_stop(); });
  EXPECT_FALSE(progress().wait(point, {.stop = stop.get_token()}));
  stopper.join();
  gate.open();
  EXPECT_TRUE(progress().wait(point, {}));
  EXPECT_TRUE(progress().wait(point, {.stop = stop.get_token()})) << "passed beats stopped";
}

TEST_F(DeviceWhileHeld, ManyWaitForDifferentPointsOfOneStream) {
  hold(StreamRole::kCompute);
  std::vector<std::thread> waiters;
  std::atomic<int> done = 0;
  for (int i = 0; i < 8; ++i) {
    const Point point{device->stream(StreamRole::kCompute),
                      enqueue_step(StreamRole::kCompute, [] {})};
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

TEST_F(DeviceWhileHeld, DestructionDrainsQueuesThatWaitForEachOther) {
  std::atomic<int> ran = 0;
  hold(StreamRole::kCompute);
  constexpr int kAll = kSteps * static_cast<int>(kStreamRoles);
  for (int i = 0; i < kAll; ++i) {
    const StreamRole role = kAllRoles.at(static_cast<std::size_t>(i) % kStreamRoles);
    const StreamRole before = kAllRoles.at(static_cast<std::size_t>(i + 3) % kStreamRoles);
    progress().make_wait(device->stream(role), record(before));
    enqueue_step(role, [&] { ++ran; });
  }
  gate.open();
  device.reset();
  EXPECT_EQ(ran, kAll);
  for (const auto& task : tasks) EXPECT_EQ(task->ends, 1);
}

TEST_F(DeviceTest, AClosureRunsOnAThreadThatServesTheDevice) {
  EXPECT_FALSE(on_device_thread());
  std::atomic<bool> inside = false;
  enqueue(StreamRole::kCopyOut, [&](Stream&) { inside = on_device_thread(); });
  EXPECT_TRUE(wait(StreamRole::kCopyOut));
  EXPECT_TRUE(inside);
  EXPECT_FALSE(on_device_thread());
}

TEST_F(DeviceWhileHeld, CountsTheTimeThatItWorkedAndNotTheTimeThatItWaited) {
  constexpr std::chrono::milliseconds kLong{5};
  hold(StreamRole::kCompute);
  progress().make_wait(device->stream(StreamRole::kCopyOut), record(StreamRole::kCompute));
  enqueue_step(StreamRole::kCopyOut, [] {});
  const auto until = std::chrono::steady_clock::now() + kLong;
  while (std::chrono::steady_clock::now() < until) std::this_thread::yield();
  const auto opened = std::chrono::steady_clock::now();
  gate.open();
  EXPECT_TRUE(wait(StreamRole::kCopyOut));
  const auto since = std::chrono::steady_clock::now() - opened;
  EXPECT_TRUE(wait(StreamRole::kCompute));
  EXPECT_GE(device->busy(StreamRole::kCompute), kLong);
  EXPECT_EQ(device->busy(StreamRole::kCompute), tasks.front()->took);
  EXPECT_LE(device->busy(StreamRole::kCopyOut), since) << "it waited for the other stream";
  EXPECT_EQ(device->busy(StreamRole::kCopyIn).count(), 0);
}

/// The live view of this process.
LiveFigures live_figures() {
  LiveFigures figures;
  for_each_source([&figures](const TimelineSource& source) { source.add_figures(figures); });
  return figures;
}

TEST_F(DeviceTest, TellsALiveViewHowLongItComputedUntilItIsGone) {
  EXPECT_TRUE(live_figures().knows_busy);
  EXPECT_EQ(live_figures().busy.count(), 0);
  for (const StreamRole role : {StreamRole::kCompute, StreamRole::kCopyIn}) {
    enqueue_step(role, [] {});
    EXPECT_TRUE(wait(role));
  }
  EXPECT_GT(live_figures().busy.count(), 0);
  EXPECT_EQ(live_figures().busy, device->busy(StreamRole::kCompute));
  device.reset();
  EXPECT_FALSE(live_figures().knows_busy);
}

TEST_F(DeviceTest, RefusesAStreamOfAnotherDevice) {
  EXPECT_THROW((void)progress().record(StreamId::next()), UsageError);
  EXPECT_THROW((void)progress().passed(StreamId::next()), UsageError);
}

TEST_F(DeviceTest, CopiesToTheDeviceOnItAndBack) {
  const Bytes size{100'003};
  auto* const host = static_cast<unsigned char*>(device->host_upstream().allocate(size));
  void* const a = device->upstream().allocate(size);
  void* const b = device->upstream().allocate(size);
  ASSERT_TRUE(host != nullptr && a != nullptr && b != nullptr);
  for (std::size_t i = 0; i < size.count; ++i) host[i] = static_cast<unsigned char>(i * 7 % 251);
  enqueue(StreamRole::kCompute, [&](Stream& stream) {
    kit().set_bytes(stream, b, 0xEE, size);
    stream.copy(a, host, size);
    stream.copy(b, a, {size.count - 1});
    kit().step(stream, [host, size] { std::memset(host, 0, size.count); });
    stream.copy(host, b, size);
  });
  EXPECT_TRUE(wait(StreamRole::kCompute));
  for (std::size_t i = 0; i + 1 < size.count; ++i) ASSERT_EQ(host[i], i * 7 % 251) << i;
  EXPECT_EQ(host[size.count - 1], 0xEE);
  device->upstream().deallocate(a, size);
  device->upstream().deallocate(b, size);
  device->host_upstream().deallocate(host, size);
}

TEST_F(DeviceTest, GivesMemoryUpToItsCapacityAndNullBeyond) {
  Upstream& upstream = device->upstream();
  EXPECT_EQ(upstream.capacity(), kMemory);
  EXPECT_EQ(upstream.allocate({kMemory.count + 1}), nullptr);
  void* const most = upstream.allocate({kMemory.count - 4096});
  ASSERT_NE(most, nullptr);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(most) % Upstream::kAlignment, 0U);
  EXPECT_EQ(upstream.allocate({8192}), nullptr);
  upstream.deallocate(most, {kMemory.count - 4096});
  void* const again = upstream.allocate({8192});
  EXPECT_NE(again, nullptr);
  upstream.deallocate(again, {8192});
}

}  // namespace
}  // namespace weir
