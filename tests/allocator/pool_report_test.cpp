// The text of a failed request.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "allocator/base/error.hpp"
#include "allocator/pool_fixture.hpp"
#include "support/message_of.hpp"

namespace weir {
namespace {

using ::testing::HasSubstr;
using testing::message_of;
using ::testing::Not;
using testing::options_of;

struct PoolReport : testing::PoolFixture {
  Pool pool{memory(), options_of(kib(64))};

  std::string failure(Bytes bytes, std::string_view label = {}) {
    return message_of<OutOfMemory>([&] { (void)pool.allocate(bytes, c, label); });
  }
};

TEST_F(PoolReport, NamesWhatWasAskedAndWhereThePoolStandsAlsoAsFigures) {
  (void)pool.allocate(kib(16), a, "weights");
  (void)pool.allocate(kib(8), a, "weights");
  (void)pool.allocate(kib(4), a, "inputs");
  void* awaiting = pool.allocate(kib(16), a, "staged");
  void* cached = pool.allocate(kib(8), a, "scratch");
  pool.record_use(awaiting, b);
  pool.deallocate(awaiting, a);
  pool.deallocate(cached, a);
  pool.set_limits(kib(64), {.hand_over = false, .wait = false});
  try {
    (void)pool.allocate({30'000}, c, "activations");
    ADD_FAILURE() << "there is no room";
  } catch (const OutOfMemory& error) {
    const std::string report = error.what();
    EXPECT_THAT(report, HasSubstr("asked 29.3 KiB (a block of 32 KiB) for 'activations'"));
    EXPECT_THAT(report, HasSubstr("on stream " + std::to_string(c.value)));
    EXPECT_THAT(report, HasSubstr("budget 64 KiB"));
    EXPECT_THAT(report,
                HasSubstr("reserved 52 KiB = allocated 28 KiB + awaiting 16 KiB + cached 8 KiB"));
    EXPECT_THAT(report, HasSubstr("largest free block 8 KiB"));
    EXPECT_THAT(report, HasSubstr("\n  biggest holders:\n    weights: 24 KiB in 2 blocks\n"
                                  "    staged (freed, awaiting the device): 16 KiB in 1 block\n"
                                  "    inputs: 4 KiB in 1 block\n"));
    EXPECT_THAT(report, Not(HasSubstr("scratch")));
    const MemoryShortage& figures = error.figures();
    EXPECT_EQ(figures.asked, Bytes{30'000});
    EXPECT_EQ(figures.block, kib(32));
    EXPECT_EQ(figures.budget, kib(64));
    EXPECT_EQ(figures.allocated, kib(28));
    EXPECT_EQ(figures.awaiting, kib(16));
    EXPECT_EQ(figures.cached, kib(8));
    EXPECT_EQ(figures.largest_cached, kib(8));
    ASSERT_EQ(figures.holders.size(), 3U);
    EXPECT_EQ(figures.holders.front().label, "weights");
    EXPECT_EQ(figures.holders.front().bytes, kib(24));
    EXPECT_EQ(figures.holders.front().blocks, 2U);
    EXPECT_EQ(figures.holders.at(1).label, "staged (freed, awaiting the device)");
  }
}

TEST_F(PoolReport, SaysWhatEachStageFound) {
  (void)pool.allocate(kib(48), a);  // a block of 64 KiB
  const std::string report = failure(kib(4));
  for (const char* stage :
       {"own stream", "other streams", "growth", "release", "handover", "wait"}) {
    EXPECT_THAT(report, HasSubstr(std::string("\n    ") + stage + " "));
  }
  EXPECT_THAT(report, HasSubstr("the budget had room for 0 B"));
  EXPECT_THAT(report, HasSubstr("0 segments were released"));
  EXPECT_THAT(report, HasSubstr("0 waits, and no pending work"));
}

TEST_F(PoolReport, SaysWhatThePolicyLeftOut) {
  (void)pool.allocate(kib(64), a);
  pool.set_limits(kib(64), {.hand_over = false, .wait = false});
  const std::string report = failure(kib(4));
  EXPECT_THAT(report, HasSubstr("handover      not allowed by the policy"));
  EXPECT_THAT(report, HasSubstr("wait          not allowed by the policy"));
}

TEST_F(PoolReport, CountsWhatItTried) {
  void* one = pool.allocate(kib(16), a);
  (void)pool.allocate(kib(32), a);
  pool.record_use(one, b);
  pool.deallocate(one, a);
  // First for the use on the second stream, then for the free itself.
  EXPECT_THAT(failure(kib(64)), HasSubstr("2 waits, and no pending work"));
}

TEST_F(PoolReport, SaysSoWhenTheBudgetIsTooSmallForTheBlock) {
  void* pointer = pool.allocate(kib(16), a);
  pool.record_use(pointer, b);
  pool.deallocate(pointer, a);
  EXPECT_THAT(failure(kib(128)), HasSubstr("larger than the budget"));
}

TEST_F(PoolReport, SaysSoWhenTheUpstreamHadNoRoom) {
  upstream.refuse_calls(testing::Fault::always());
  EXPECT_THAT(failure(kib(4)), HasSubstr("the upstream had no room (its capacity is 1 GiB)"));
}

TEST_F(PoolReport, SaysSoWhenNoBlockCanBeThatLarge) {
  const std::string report = failure({UINT64_MAX});
  EXPECT_THAT(report, HasSubstr("more than any block can hold"));
  EXPECT_THAT(report, HasSubstr("no stage was tried"));
}

TEST_F(PoolReport, HoldersAreTheBiggestFirstAndCutToFit) {
  EXPECT_EQ(pool.holders(5), "none");
  EXPECT_THAT(failure(kib(128)), HasSubstr("\n  biggest holders: none\n"));
  (void)pool.allocate(kib(4), a);
  (void)pool.allocate(kib(8), a, "a label that is longer than thirty-one characters");
  EXPECT_EQ(pool.holders(1), "a label that is longer than thi: 8 KiB in 1 block");
  EXPECT_THAT(pool.holders(5), HasSubstr("; (no label): 4 KiB in 1 block"));
}

TEST_F(PoolReport, AnAttemptThatFailsThrowsNothingAndTellsWhatItFound) {
  (void)pool.allocate(kib(64), a);
  Attempt attempt;
  EXPECT_EQ(pool.try_allocate(kib(3), b, "x", attempt), nullptr);
  EXPECT_EQ(attempt.asked, kib(3));
  EXPECT_EQ(attempt.block, kib(4));
  EXPECT_EQ(attempt.stream, b);
  EXPECT_EQ(attempt.label, "x");
  EXPECT_TRUE(attempt.hand_over_allowed);
  EXPECT_TRUE(attempt.wait_allowed);
  EXPECT_EQ(pool.statistics().failures, 0U) << "whoever gives up on it counts it";
  EXPECT_THAT(message_of<OutOfMemory>([&] { pool.fail(attempt); }), HasSubstr("asked 3 KiB"));
  EXPECT_EQ(pool.statistics().failures, 1U);
}

}  // namespace
}  // namespace weir
