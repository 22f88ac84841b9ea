// Which waiters wake when a stream of the cpu device passes a point.

#include "scheduler/device/cpu_stream.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <thread>
#include <vector>

#include "support/gate.hpp"

namespace weir::testing {
namespace {

class HeldTask final : public Task {
 public:
  void run(Stream& /*stream*/) noexcept override { gate.pass(); }
  void finished(const TaskTime& /*time*/) noexcept override {}

  Gate gate;
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

}  // namespace
}  // namespace weir::testing
