#include "bench/simulate/device.hpp"

#include <gtest/gtest.h>

namespace weir::simulate {
namespace {

TEST(SimulatedMemory, InputsComeFreeWhenTheirBatchIsPassed) {
  Memory memory(Bytes{10});
  ASSERT_TRUE(memory.take(Bytes{6}));
  memory.free_behind(1, Bytes{6}, {});
  EXPECT_EQ(memory.used(), Bytes{6});
  EXPECT_EQ(memory.pressure().awaiting, Bytes{6});
  EXPECT_FALSE(memory.take(Bytes{5}));
  memory.pass(1, Bytes{6});
  EXPECT_EQ(memory.used(), Bytes{});
  EXPECT_TRUE(memory.take(Bytes{5}));
  EXPECT_EQ(memory.peak(), Bytes{6});
}

TEST(SimulatedMemory, AFreedWorkingSetServesTheNextOneAtOnce) {
  Memory memory(Bytes{10});
  ASSERT_TRUE(memory.take_work(Bytes{6}));
  memory.free_behind(1, {}, Bytes{6});
  EXPECT_EQ(memory.used(), Bytes{6}) << "the device still computes with it";
  EXPECT_EQ(memory.pressure().held, Bytes{}) << "but its stream has it cached";
  ASSERT_TRUE(memory.take_work(Bytes{8}));
  EXPECT_EQ(memory.used(), Bytes{8});
  EXPECT_FALSE(memory.take_work(Bytes{8})) << "two open ones need two";
}

TEST(SimulatedMemory, TheLargestPendingWorkingSetCountsUntilItIsPassed) {
  Memory memory(Bytes{10});
  for (std::uint64_t batch = 1; const std::uint64_t work : {3U, 8U, 5U, 2U}) {
    ASSERT_TRUE(memory.take_work(Bytes{work}));
    memory.free_behind(batch++, {}, Bytes{work});
  }
  EXPECT_EQ(memory.used(), Bytes{8});
  memory.pass(1, {});
  EXPECT_EQ(memory.used(), Bytes{8});
  memory.pass(2, {});
  EXPECT_EQ(memory.used(), Bytes{5});
  memory.pass(4, {});
  EXPECT_EQ(memory.used(), Bytes{});
}

TEST(SimulatedMemory, InputsTakeOverAFreedWorkingSetThatTheDeviceStillUses) {
  Memory memory(Bytes{10});
  ASSERT_TRUE(memory.take(Bytes{2}));
  ASSERT_TRUE(memory.take_work(Bytes{8}));
  EXPECT_FALSE(memory.take_over(Bytes{2}, 0)) << "the working set is not freed yet";
  memory.free_behind(1, Bytes{2}, Bytes{8});
  ASSERT_FALSE(memory.take(Bytes{2}));
  ASSERT_TRUE(memory.take_over(Bytes{2}, 1));
  EXPECT_EQ(memory.used(), Bytes{10}) << "no new memory";
  EXPECT_TRUE(memory.take_work(Bytes{6})) << "the stream still has six";
  EXPECT_FALSE(memory.take_work(Bytes{1}));
  memory.pass(1, Bytes{2});
  EXPECT_EQ(memory.used(), Bytes{8}) << "the new inputs and the working set";
  EXPECT_TRUE(memory.take_work(Bytes{2}));
}

TEST(SimulatedMemory, ABlockCannotHavePagesOfAFreedWorkingSetAndNewOnes) {
  Memory memory(Bytes{10});
  ASSERT_TRUE(memory.take_work(Bytes{6}));
  memory.free_behind(1, {}, Bytes{6});
  ASSERT_FALSE(memory.take(Bytes{7}));
  EXPECT_FALSE(memory.take_over(Bytes{7}, 1)) << "six and one";
  EXPECT_TRUE(memory.take(Bytes{4})) << "nothing has changed";
  EXPECT_TRUE(memory.take_over(Bytes{6}, 1));
}

TEST(SimulatedMemory, KeptOutputsAwaitTheirBatchOnlyIfItIsNotPassed) {
  Memory memory(Bytes{10});
  ASSERT_TRUE(memory.take(Bytes{4}));
  memory.free_kept(Bytes{1}, true);
  EXPECT_EQ(memory.used(), Bytes{3});
  memory.free_kept(Bytes{3}, false);
  EXPECT_EQ(memory.used(), Bytes{3});
  memory.pass(1, Bytes{3});
  EXPECT_EQ(memory.used(), Bytes{});
}

}  // namespace
}  // namespace weir::simulate
