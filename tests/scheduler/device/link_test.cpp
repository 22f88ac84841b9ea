// Two devices in one program: the cpu, and the device in this program's kit. Copies between them in
// both directions, in order, with errors, and the refusal of tensors that are elsewhere.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "allocator/base/error.hpp"
#include "scheduler/device/cpu_device.hpp"
#include "scheduler/device/kit.hpp"
#include "scheduler/device_link.hpp"
#include "scheduler/scheduler.hpp"
#include "support/gate.hpp"
#include "support/held.hpp"
#include "support/message_of.hpp"
#include "support/options_of.hpp"
#include "support/print.hpp"

namespace weir {
namespace {

using testing::kit;
using testing::message_of;

constexpr std::size_t kLinked = 4096;
constexpr Bytes kLinkedBytes{kLinked * sizeof(float)};

/// A device, a pool and a scheduler.
struct LinkedEnd {
  LinkedEnd(std::unique_ptr<DeviceBackend> backend, Bytes budget, Policy policy)
      : device(std::move(backend)),
        pool(device.memory(), testing::options_of(budget)),
        scheduler(device, pool, {.policy = policy}) {}

  Device device;
  Pool pool;
  Scheduler scheduler;
};

/// Operations of the cpu, whose closures may use the memory.
auto add_on_cpu(float value) {
  return [value](Stream&, Inputs in, Outputs out) {
    for (std::size_t i = 0; i < out[0].size(); ++i) out[0][i] = in[0][i] + value;
  };
}
auto broken_on_cpu() {
  return [](Stream&, Inputs, Outputs) { throw Error("broken on purpose"); };
}

class DeviceLinkTest : public ::testing::Test {
 protected:
  DeviceLinkTest() { start(mib(4), mib(4)); }

  void start(Bytes cpu_budget, Bytes device_budget, Policy policy = Policy::kThrottled) {
    link.reset();
    device.reset();
    cpu.reset();
    cpu = std::make_unique<LinkedEnd>(std::make_unique<CpuDevice>(mib(8)), cpu_budget, policy);
    device = std::make_unique<LinkedEnd>(kit().open(mib(8)), device_budget, policy);
    link = std::make_unique<DeviceLink>(cpu->scheduler, device->scheduler);
  }

  [[nodiscard]] Tensor on_cpu(float value, std::string_view label = "on the cpu") {
    Tensor tensor = cpu->scheduler.empty({kLinked}, label);
    cpu->scheduler.submit("fill", {.writes = {tensor}}, [value](Stream&, Inputs, Outputs out) {
      std::ranges::fill(out[0], value);
    });
    return tensor;
  }
  [[nodiscard]] Tensor to_device(const Tensor& tensor) {
    return link->copy_to(device->scheduler, tensor);
  }
  [[nodiscard]] Tensor to_cpu(const Tensor& tensor) {
    return link->copy_to(cpu->scheduler, tensor);
  }
  /// A copy within the device: an operation of its compute stream.
  [[nodiscard]] Tensor copied_there(const Tensor& from) {
    Tensor tensor = device->scheduler.empty(from.shape(), "copied");
    device->scheduler.submit("copy", {.reads = {from}, .writes = {tensor}},
                             [](Stream& stream, Inputs in, Outputs out) {
                               stream.copy(out[0].data(), in[0].data(), {in[0].size_bytes()});
                             });
    return tensor;
  }
  static void expect_all(Scheduler& scheduler, const Tensor& tensor, float value) {
    const std::vector<float> got = scheduler.read(tensor);
    EXPECT_EQ(std::ranges::count(got, value), std::ssize(got));
  }
  /// One step: what the cpu makes goes through the device and back into the cpu's state.
  void step(const Tensor& state) {
    const Batch on_the_cpu = cpu->scheduler.begin_batch("step");
    const Batch on_the_device = device->scheduler.begin_batch("step");
    Tensor x = cpu->scheduler.empty({kLinked}, "x");
    cpu->scheduler.submit("add", {.reads = {state}, .writes = {x}}, add_on_cpu(1));
    const Tensor back = to_cpu(copied_there(to_device(x)));
    cpu->scheduler.submit("keep", {.reads = {back}, .writes = {state}}, add_on_cpu(0));
  }

  std::unique_ptr<LinkedEnd> cpu;
  std::unique_ptr<LinkedEnd> device;
  std::unique_ptr<DeviceLink> link;
};

using DeviceLinkWhileHeld = DeviceLinkTest;

TEST_F(DeviceLinkTest, CopiesInBothDirectionsAndCountsThem) {
  const Tensor x = on_cpu(2.5F);
  const Tensor there = to_device(x);
  EXPECT_EQ(there.shape(), x.shape());
  const Tensor back = to_cpu(copied_there(there));
  expect_all(device->scheduler, there, 2.5F);
  expect_all(cpu->scheduler, back, 2.5F);
  cpu->scheduler.wait_all();
  device->scheduler.wait_all();
  for (const LinkedEnd* end : {cpu.get(), device.get()}) {
    const LinkFigures figures = link->copied_to(end->scheduler);
    EXPECT_EQ(figures.copies, 1U);
    EXPECT_EQ(figures.bytes, kLinkedBytes);
    EXPECT_GT(figures.time.count(), 0);
  }
}

TEST_F(DeviceLinkTest, CopiesAViewOfAnyDType) {
  std::vector<std::int64_t> host(30);
  std::iota(host.begin(), host.end(), std::int64_t{1} << 40U);
  const Tensor x = cpu->scheduler.copy_in(host, {10, 3});
  const Tensor there = to_device(x.rows(2, 5));
  EXPECT_EQ(there.shape(), (Shape{5, 3}));
  EXPECT_EQ(there.dtype(), DType::kInt64);
  const Tensor bytes = to_cpu(there.as_bytes().rows(8, 3));
  EXPECT_EQ(device->scheduler.read<std::int64_t>(there),
            std::vector<std::int64_t>(host.begin() + 6, host.begin() + 21));
  EXPECT_EQ(cpu->scheduler.read<std::uint8_t>(bytes), (std::vector<std::uint8_t>{7, 0, 0}));
}

TEST_F(DeviceLinkWhileHeld, NobodyWaitsForTheOtherDeviceButTheDevices) {
  testing::expect_named_while_held();
  testing::Gate gate;
  cpu->scheduler.submit("hold", {}, [&gate](Stream&, Inputs, Outputs) { gate.pass(); });
  gate.await_arrival();
  const Tensor x = on_cpu(1);
  const Tensor back = to_cpu(copied_there(to_device(x)));
  const Tensor after = to_device(back);
  EXPECT_FALSE(device->scheduler.reached(device->scheduler.written(after)));
  testing::give_others_a_chance();
  gate.open();
  expect_all(device->scheduler, after, 1);
}

TEST_F(DeviceLinkWhileHeld, WhatIsChangedOrFreedAfterwardsWasCopiedBefore) {
  testing::expect_named_while_held();
  testing::Gate gate;
  Tensor x = on_cpu(1);
  cpu->scheduler.submit("hold", {.stream = StreamRole::kCompute2},
                        [&gate](Stream&, Inputs, Outputs) { gate.pass(); });
  gate.await_arrival();
  const Tensor there = to_device(x);
  cpu->scheduler.submit("add", {.reads = {x}, .writes = {x}}, add_on_cpu(1));
  const Tensor later = to_device(x);
  x = {};
  Tensor freed = copied_there(there);
  const Tensor back = to_cpu(freed);
  freed = {};
  gate.open();
  expect_all(device->scheduler, there, 1);
  expect_all(device->scheduler, later, 2);
  expect_all(cpu->scheduler, back, 1);
}

TEST_F(DeviceLinkTest, ManyStepsFinishWithinSmallBudgetsUnderEveryPolicy) {
  constexpr int kLinkSteps = 40;
  for (const Policy policy :
       {Policy::kThrottled, Policy::kBackstop, Policy::kUnbounded, Policy::kBarrier}) {
    SCOPED_TRACE(to_string(policy));
    // Live memory and two steps; unbounded needs room for all that it submits at once.
    const Bytes budget{(policy == Policy::kUnbounded ? 2 * kLinkSteps + 4 : 6) *
                       kLinkedBytes.count};
    start(budget, budget, policy);
    const Tensor state = on_cpu(0);
    for (int i = 0; i < kLinkSteps; ++i) step(state);
    expect_all(cpu->scheduler, state, kLinkSteps);
    device->scheduler.wait_all();
    EXPECT_LE(cpu->pool.statistics().reserved.peak, budget);
    EXPECT_LE(device->pool.statistics().reserved.peak, budget);
    EXPECT_EQ(link->copied_to(device->scheduler).copies, std::uint64_t{kLinkSteps});
    EXPECT_EQ(link->copied_to(cpu->scheduler).bytes, Bytes{kLinkSteps * kLinkedBytes.count});
    EXPECT_EQ(device->scheduler.memory_info().allocated, Bytes{});
  }
}

TEST_F(DeviceLinkTest, ProducersOnFourThreadsGetTheirOwnResults) {
  std::vector<std::thread> producers;
  std::atomic<int> right = 0;
  for (int p = 0; p < 4; ++p) {
    producers.emplace_back([&, p] {
      const Tensor state = on_cpu(static_cast<float>(100 * p));
      for (int i = 0; i < 10; ++i) step(state);
      const std::vector<float> got = cpu->scheduler.read(state);
      if (std::ranges::count(got, static_cast<float>(100 * p + 10)) == std::ssize(got)) ++right;
    });
  }
  for (std::thread& producer : producers) producer.join();
  EXPECT_EQ(right, 4);
}

TEST_F(DeviceLinkTest, AnErrorGoesOverWithTheCopyAndBack) {
  const Tensor x = cpu->scheduler.empty({kLinked}, "x");
  cpu->scheduler.submit("broken", {.writes = {x}}, broken_on_cpu());
  const Tensor there = to_device(x);
  const std::string error = message_of<OperationError>([&] { device->scheduler.wait(there); });
  EXPECT_NE(error.find("operation 'broken'"), std::string::npos) << error;
  const Tensor back = to_cpu(there);  // the device knows by now
  EXPECT_EQ(message_of<OperationError>([&] { cpu->scheduler.wait(back); }), error);
  EXPECT_EQ(message_of<OperationError>([&] { device->scheduler.wait_all(); }), error);
  EXPECT_EQ(message_of<OperationError>([&] { cpu->scheduler.wait_all(); }), error);
  EXPECT_EQ(link->copied_to(device->scheduler).copies, 0U);
  expect_all(device->scheduler, to_device(on_cpu(3)), 3);  // both go on
  device->scheduler.wait_all();
}

TEST_F(DeviceLinkTest, AnErrorOnTheDeviceReachesTheCpu) {
  const Tensor x = device->scheduler.empty({kLinked}, "x");
  device->scheduler.submit("broken", {.writes = {x}}, broken_on_cpu());
  const Tensor back = to_cpu(x);
  Tensor more = cpu->scheduler.empty({kLinked}, "more");
  cpu->scheduler.submit("add", {.reads = {back}, .writes = {more}}, add_on_cpu(1));
  const std::string error = message_of<OperationError>([&] { cpu->scheduler.wait(more); });
  EXPECT_NE(error.find("operation 'broken'"), std::string::npos) << error;
  EXPECT_THROW(cpu->scheduler.wait_all(), OperationError);
  EXPECT_THROW(device->scheduler.wait_all(), OperationError);
}

TEST_F(DeviceLinkTest, ACopyThatHasNoRoomThrowsAndTheNextFits) {
  start(mib(4), {2 * kLinkedBytes.count}, Policy::kUnbounded);
  Tensor held = to_device(on_cpu(1));
  Tensor also = to_device(on_cpu(2));
  const Tensor x = on_cpu(3);
  EXPECT_THROW((void)to_device(x), OutOfMemory);
  held = {};
  device->scheduler.wait_all();
  expect_all(device->scheduler, to_device(x), 3);
  expect_all(device->scheduler, also, 2);
  cpu->scheduler.wait_all();
  EXPECT_EQ(link->copied_to(device->scheduler).copies, 3U) << "the refused one does not count";
}

TEST_F(DeviceLinkTest, ACopyWaitsForMemoryThatItsOwnDeviceFreesBehindTheOther) {
  start(mib(4), {2 * kLinkedBytes.count}, Policy::kBackstop);
  const Tensor x = on_cpu(1);
  for (int i = 0; i < 8; ++i) expect_all(cpu->scheduler, to_cpu(to_device(x)), 1);
  EXPECT_LE(device->pool.statistics().reserved.peak, Bytes{2 * kLinkedBytes.count});
}

TEST_F(DeviceLinkTest, StagingMemoryIsReused) {
  const Tensor x = on_cpu(1);
  for (int i = 0; i < 20; ++i) {
    cpu->scheduler.wait(to_cpu(to_device(x)));
    device->scheduler.wait_all();  // it learns late of the end of short operations
  }
  EXPECT_LE(link->staging(), Bytes{2 * kLinkedBytes.count});
}

TEST_F(DeviceLinkTest, EveryCallRefusesATensorThatIsElsewhereAndSaysWhere) {
  const std::string there = device->device.name();
  const Tensor w = on_cpu(1, "w1");
  const std::string ends = " of shape 4096 is on cpu" +
                           std::string(there == "cpu" ? ", of another scheduler" : "") +
                           ", and it runs on " + there + ": copy it first (DeviceLink::copy_to)";
  Scheduler& s = device->scheduler;
  const auto says = [&](const std::string& begins, const auto& call) {
    EXPECT_EQ(message_of<UsageError>(call), begins + " 'w1'" + ends);
  };
  const auto none = [](Stream&, Inputs, Outputs) {};
  const Tensor x = s.empty({kLinked}, "x");
  s.submit("set", {.writes = {x}}, none);
  const std::uint64_t operations = s.operations();
  const MemoryInfo before = s.memory_info();
  const Tensor y = s.empty({kLinked}, "y");
  says("dense: its input 2", [&] { s.submit("dense", {.reads = {x, w}, .writes = {y}}, none); });
  says("step: its output 1", [&] { s.submit("step", {.reads = {x}, .writes = {w}}, none); });
  says("read: its tensor", [&] { (void)s.read(w); });
  says("wait: its tensor", [&] { s.wait(w); });
  says("written: its tensor", [&] { (void)s.written(w); });
  says("write: its tensor", [&] { s.write(w, 0, std::vector<float>(1)); });
  EXPECT_EQ(s.operations(), operations);
  EXPECT_EQ(s.memory_info().allocated, before.allocated) << "a refused call takes nothing";
  // A copy of what is already there, and one to where the link does not lead.
  EXPECT_NE(message_of<UsageError>([&] { (void)to_cpu(w); }).find("input 1 'w1'"),
            std::string::npos);
  LinkedEnd third(std::make_unique<CpuDevice>(mib(8)), mib(4), Policy::kThrottled);
  EXPECT_EQ(message_of<UsageError>([&] { (void)link->copy_to(third.scheduler, w); }),
            "copy_to: the link does not reach this scheduler of cpu");
  EXPECT_THROW(DeviceLink(cpu->scheduler, cpu->scheduler), UsageError);
}

TEST_F(DeviceLinkTest, EndsWithItsCopiesUnderWayAndTheirTensorsGone) {
  for (int i = 0; i < 10; ++i) {
    (void)to_cpu(to_device(on_cpu(1)));
    link.reset();
    link = std::make_unique<DeviceLink>(device->scheduler, cpu->scheduler);  // the other way round
  }
  const Tensor x = to_device(on_cpu(2));
  link.reset();
  expect_all(device->scheduler, x, 2);
}

TEST_F(DeviceLinkTest, ATensorMayBeFreedOnAnyThreadAndAfterItsScheduler) {
  Tensor there = to_device(on_cpu(1));
  Tensor back = to_cpu(there);
  cpu->scheduler.submit("free", {}, [&there](Stream&, Inputs, Outputs) { there = {}; });
  cpu->scheduler.wait_all();
  device->scheduler.wait_all();
  EXPECT_EQ(device->scheduler.memory_info().allocated, Bytes{});
  link.reset();
  cpu.reset();
  back = {};
}

}  // namespace
}  // namespace weir
