// How an allocation waits for other batches' memory, without threads: a deadline in the past ends
// every sleep at once, so that only earlier knowledge counts.

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>

#include "allocator/pool.hpp"
#include "scheduler/admission/admission.hpp"
#include "scheduler/admission/admission_rules.hpp"
#include "support/manual_progress.hpp"
#include "support/options_of.hpp"

namespace weir {
namespace {

struct AwaitMemory : ::testing::Test {
  [[nodiscard]] bool await(TicketRef batch, std::uint64_t looked, Bytes block = mib(1)) {
    return admission.await_memory({.batch = batch, .block = block, .looked = looked});
  }

  SimulatedUpstream upstream{mib(64)};
  testing::ManualProgress progress;
  Pool pool{{upstream, progress}, testing::options_of(mib(64))};
  Admission admission{pool, {progress, {}}, Policy::kUnbounded, {}, std::chrono::hours(1)};
  // Two batches, so that one may free what the other lacks.
  TicketRef one = admission.open("one", {});
  TicketRef other = admission.open("other", {});
};

TEST_F(AwaitMemory, FailsWhereNothingWasFreedInTime) {
  EXPECT_FALSE(await(one, admission.given_back()));
}

TEST_F(AwaitMemory, LooksAgainWhereABlockWasFreedSinceItsLook) {
  const std::uint64_t looked = admission.given_back();
  admission.note_allocated(other, mib(1));
  admission.note_freed(other, mib(1), false);
  EXPECT_TRUE(await(one, looked));
  EXPECT_FALSE(await(one, admission.given_back()));
}

TEST_F(AwaitMemory, LooksAgainWhereASmallTensorWasFreedSinceItsLook) {
  const std::uint64_t looked = admission.given_back();
  admission.note_given_back();
  EXPECT_TRUE(await(one, looked));
}

TEST_F(AwaitMemory, FailsForWhatNoBudgetHasRoomFor) {
  const std::uint64_t looked = admission.given_back();
  admission.note_given_back();
  EXPECT_FALSE(await(one, looked, mib(65)));
  EXPECT_FALSE(await(one, looked, Bytes{}));
}

using std::chrono::seconds;

constexpr seconds kGrace{10};

TEST(OpenGrace, IsOverAfterWaitsForTheSameOldestBatchThatAddUpToIt) {
  OpenGrace grace;
  EXPECT_FALSE(grace.over()) << "not begun";
  grace.observe(7, kGrace);
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(grace.over());
    EXPECT_EQ(grace.left(), seconds(10 - i));
    grace.note_waited(seconds(1));
    grace.observe(7, kGrace);
  }
  EXPECT_TRUE(grace.over());
}

TEST(OpenGrace, BeginsAgainWhenTheOldestBatchCloses) {
  OpenGrace grace;
  grace.observe(7, kGrace);
  grace.note_waited(2 * kGrace);
  EXPECT_TRUE(grace.over());
  for (const std::uint64_t oldest : {8U, 0U}) {
    grace.observe(oldest, kGrace);
    EXPECT_EQ(grace.left(), kGrace) << oldest;
    EXPECT_FALSE(grace.over());
  }
}

TEST(OpenGrace, OfTheGreatestLengthIsNotOverAfterYears) {
  OpenGrace grace;
  grace.observe(1, std::chrono::nanoseconds::max());
  grace.note_waited(std::chrono::hours(100'000));
  EXPECT_FALSE(grace.over());
}

}  // namespace

}  // namespace weir
