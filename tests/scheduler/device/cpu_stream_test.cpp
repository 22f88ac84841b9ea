// Which waiters wake when a stream of the cpu device passes a point, and what a stream says of the
// time before a task.

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include "allocator/base/error.hpp"
#include "scheduler/device/cpu_device.hpp"
#include "scheduler/device/device_kind.hpp"
#include "support/gate.hpp"
#include "support/message_of.hpp"

namespace weir::testing {
namespace {

class HeldTask final : public Task {
 public:
  void run(Stream& /*stream*/) noexcept override { gate.pass(); }
  void finished(const TaskTime& time) noexcept override { ran = time; }

  Gate gate;
  TaskTime ran;  ///< once its point is passed
};

/// Two threads wait for two points of one stream; `later_first` selects which sleeps first.
void expect_the_earlier_wakes(bool later_first) {
  HeldTask first;
  HeldTask second;
  CpuStream stream(StreamRole::kCompute);
  const std::uint64_t earlier = stream.enqueue(first);
  const std::uint64_t later = stream.enqueue(second);
  Gate woken;
  woken.open();
  std::vector<std::thread> waiters;
  const auto wait_in_a_thread = [&](std::uint64_t sequence) {
    waiters.emplace_back([&, sequence] {
      EXPECT_TRUE(stream.wait(sequence, {}));
      if (sequence == earlier) woken.pass();
    });
    while (stream.waiting() < waiters.size()) std::this_thread::yield();
  };
  wait_in_a_thread(later_first ? later : earlier);
  wait_in_a_thread(later_first ? earlier : later);
  first.gate.open();
  woken.await_arrival();
  EXPECT_EQ(stream.passed(), earlier);
  second.gate.open();
  for (std::thread& waiter : waiters) waiter.join();
}

TEST(CpuStream, AnEarlierWaiterWakesWhileALaterOneSleepsWhicheverCameFirst) {
  for (const bool later_first : {false, true}) expect_the_earlier_wakes(later_first);
}

constexpr std::chrono::milliseconds kMoment{1};

void let_a_moment_pass() {
  const auto end = std::chrono::steady_clock::now() + kMoment;
  while (std::chrono::steady_clock::now() < end) std::this_thread::yield();
}

TEST(CpuStream, AWaitForAnotherStreamIsAGapInWhichItWasNotStarved) {
  HeldTask slow;
  HeldTask first;
  HeldTask second;
  first.gate.open();
  second.gate.open();
  CpuStream other(StreamRole::kCompute);
  CpuStream stream(StreamRole::kCopyIn);
  const std::uint64_t awaited = other.enqueue(slow);
  ASSERT_TRUE(stream.wait(stream.enqueue(first), {}));
  stream.enqueue_wait(other, awaited);
  const std::uint64_t end = stream.enqueue(second);
  while (other.waiting() == 0) std::this_thread::yield();
  let_a_moment_pass();
  slow.gate.open();
  ASSERT_TRUE(stream.wait(end, {}));
  EXPECT_GE(second.ran.gap - second.ran.starved, kMoment);
}

TEST(CpuStream, IsStarvedWhileNothingIsEnqueued) {
  CpuStream stream(StreamRole::kCompute);
  TaskTime longest;
  // Its thread may be late to find that nothing is enqueued.
  for (int i = 0; i < 1'000 && longest.starved < kMoment / 2; ++i) {
    HeldTask task;
    task.gate.open();
    ASSERT_TRUE(stream.wait(stream.enqueue(task), {}));
    if (task.ran.starved > longest.starved) longest = task.ran;
    EXPECT_LE(task.ran.starved, task.ran.gap);
    let_a_moment_pass();
  }
  EXPECT_GE(longest.starved, kMoment / 2);
}

TEST(OpenDevice, KnowsTheCpuAndNothingElse) {
  Device device = open_device("cpu", {.memory = mib(3)});
  EXPECT_EQ(device.total_memory(), mib(3));
  EXPECT_EQ(device.name(), "cpu");
  EXPECT_THROW((void)open_device("gpu"), UsageError);
  EXPECT_THROW((void)open_device("cpu", {.memory = {UINT64_MAX}}), UsageError);
  EXPECT_EQ(open_device("cpu").total_memory(), default_cpu_memory());
}

// The table of device kinds and the names of devices.

TEST(DeviceKind, EveryKindFindsItsFirstDeviceByItsName) {
  for (const KindOfDevice& kind : kinds_of_device()) {
    const auto found = find_device(kind.name);
    ASSERT_TRUE(found) << kind.name;
    EXPECT_EQ(*found, (DeviceId{kind.kind, 0})) << kind.name;
    EXPECT_EQ(&kind_of(*found), &kind) << kind.name;
    const std::string second = std::string(kind.name) + ":1";
    EXPECT_EQ(find_device(second).has_value(), kind.numbered) << second;
  }
}

TEST(DeviceKind, ANumberHasOneSpelling) {
  EXPECT_EQ(find_device("cuda:0"), (DeviceId{DeviceKind::kCuda, 0}));
  EXPECT_EQ(find_device("cuda:12"), (DeviceId{DeviceKind::kCuda, 12}));
  for (const char* name : {"cuda:", "cuda:01", "cuda:-1", "cuda:+1", "cuda:1x", "cuda:4294967296",
                           "cudas", "CUDA", "cpu:0", "auto", ""}) {
    EXPECT_FALSE(find_device(name)) << name;
  }
}

TEST(DeviceKind, AnUnknownNameIsRefusedWithThoseThatAreAllowed) {
  EXPECT_EQ(message_of<UsageError>([] { (void)parse_device_id("tpu"); }),
            "device 'tpu' is not known: cpu, cuda, cuda:N for GPU number N, or auto");
}

}  // namespace
}  // namespace weir::testing
