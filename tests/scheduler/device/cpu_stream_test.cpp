// Which waiters wake when a stream of the cpu device passes a point, and what a stream says of the
// time before a task.

#include "scheduler/device/cpu_stream.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include "support/gate.hpp"

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

TEST(CpuStream, AnEarlierWaiterWakesWhileALaterOneThatCameAfterItSleeps) {
  expect_the_earlier_wakes(false);
}

TEST(CpuStream, AnEarlierWaiterWakesWhileALaterOneThatCameBeforeItSleeps) {
  expect_the_earlier_wakes(true);
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

}  // namespace
}  // namespace weir::testing
