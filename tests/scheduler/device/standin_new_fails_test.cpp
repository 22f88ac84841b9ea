// A CUDA device in a program whose heap is exhausted: it reports what it cannot enqueue, and the
// rest continues.

#include <gtest/gtest.h>

#include <new>

#include "scheduler/device/standin_fixture.hpp"
#include "support/failing_new.hpp"

namespace weir {
namespace {

class Counted final : public Task {
 public:
  void run(Stream& /*stream*/) noexcept override { ++runs_; }
  void finished(const TaskTime& /*time*/) noexcept override {}
  [[nodiscard]] int runs() const { return runs_; }

 private:
  int runs_ = 0;
};

class CudaNewFails : public testing::StandinTest {
 protected:
  ~CudaNewFails() override { weir_standin_release(weir_standin_all_streams()); }
  /// Calls `act` several times with an exhausted heap, and again where it failed. Returns the
  /// number of failures.
  template <typename Act>
  static int repeat(int times, const Act& act) {
    int refused = 0;
    for (int i = 0; i < times; ++i) {
      testing::fail_each_new();
      try {
        act();
        (void)testing::stop_failing_new();
      } catch (const std::bad_alloc&) {
        (void)testing::stop_failing_new();
        ++refused;
        act();
      }
    }
    return refused;
  }
  Counted task;
  CudaDevice device{0};
};

TEST_F(CudaNewFails, ATaskThatFindsNoMemoryIsNotEnqueued) {
  weir_standin_hold(weir_standin_all_streams());
  const int refused = repeat(300, [&] { (void)device.enqueue(StreamRole::kCompute, task); });
  EXPECT_GE(refused, 1);
  EXPECT_EQ(task.runs(), 300);
  weir_standin_release(weir_standin_all_streams());
  device.drain();
}

TEST_F(CudaNewFails, AWaitThatFindsNoMemoryIsNoWait) {
  weir_standin_hold(weir_standin_all_streams());
  const std::uint64_t last = device.enqueue(StreamRole::kCopyIn, task);
  const Point point{device.stream(StreamRole::kCopyIn), last};
  const StreamId waiter = device.stream(StreamRole::kCompute);
  weir_standin_clear_counters();
  // Their marks are not passed, so the next one needs memory, before it calls CUDA.
  for (int i = 0; i < 64; ++i) device.progress().make_wait(waiter, point);
  testing::fail_new_at(1);
  EXPECT_THROW(device.progress().make_wait(waiter, point), std::bad_alloc);
  EXPECT_TRUE(testing::stop_failing_new());
  EXPECT_EQ(weir_standin_calls("cuStreamWaitEvent"), 64U);
  device.progress().make_wait(waiter, point);
  weir_standin_release(weir_standin_all_streams());
  device.drain();
}

}  // namespace
}  // namespace weir
