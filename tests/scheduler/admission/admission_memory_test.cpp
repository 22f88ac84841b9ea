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
const OpenGrace::Time kStart{seconds(1000)};

TEST(OpenGrace, IsOverAtItsEnd) {
  OpenGrace grace;
  grace.observe(1, kStart, kGrace);
  EXPECT_EQ(grace.end(), kStart + kGrace);
  EXPECT_FALSE(grace.over(kStart + kGrace - seconds(1)));
  EXPECT_TRUE(grace.over(kStart + kGrace));
}

TEST(OpenGrace, OfTheGreatestLengthNeverEnds) {
  OpenGrace grace;
  grace.observe(1, kStart, std::chrono::nanoseconds::max());
  EXPECT_FALSE(grace.over(kStart + std::chrono::hours(1'000'000)));
}

TEST(OpenGrace, IsNotOverBeforeItBegins) {
  const OpenGrace grace;
  EXPECT_FALSE(grace.over(kStart));
}

// The last open batch closed between the decision to wait for it and the wait. The wait is short,
// but another batch may overtake in the line, and open, before it looks again.
TEST(OpenGrace, LastsItsWholeTimeAlsoWhereNoBatchIsOpen) {
  OpenGrace grace;
  grace.observe(0, kStart, kGrace);
  EXPECT_EQ(grace.end(), kStart + kGrace);
  EXPECT_FALSE(grace.over(kStart));
}

TEST(OpenGrace, GoesOnWhileTheNumberOfOpenBatchesStays) {
  OpenGrace grace;
  grace.observe(2, kStart, kGrace);
  grace.observe(2, kStart + seconds(4), kGrace);
  EXPECT_EQ(grace.end(), kStart + kGrace);
}

TEST(OpenGrace, BeginsAgainWhenABatchCloses) {
  OpenGrace grace;
  grace.observe(2, kStart, kGrace);
  grace.observe(1, kStart + seconds(4), kGrace);
  EXPECT_EQ(grace.end(), kStart + seconds(4) + kGrace);
}

TEST(OpenGrace, AfterAResetTheOldEndCountsForNothing) {
  OpenGrace grace;
  grace.observe(1, kStart, kGrace);
  grace.reset();
  EXPECT_FALSE(grace.over(kStart + kGrace));
  for (const std::uint64_t open : {0U, 1U}) {
    OpenGrace again = grace;
    again.observe(open, kStart + 2 * kGrace, kGrace);
    EXPECT_FALSE(again.over(kStart + 2 * kGrace)) << open << " open";
  }
}

}  // namespace

}  // namespace weir
