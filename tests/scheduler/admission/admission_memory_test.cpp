// How an allocation waits for other batches' memory, without threads: a deadline in the past ends
// every sleep at once, so that only earlier knowledge counts.

#include <gtest/gtest.h>

#include "allocator/pool.hpp"
#include "scheduler/admission/admission.hpp"
#include "support/manual_progress.hpp"

namespace weir {
namespace {

struct AwaitMemory : ::testing::Test {
  [[nodiscard]] static PoolOptions options() {
    PoolOptions options;
    options.budget = BudgetRequest{.bytes = mib(64)};
    return options;
  }
  [[nodiscard]] bool await(TicketRef batch, std::uint64_t looked, Bytes block = mib(1)) {
    return admission.await_memory({.batch = batch, .block = block, .looked = looked});
  }

  SimulatedUpstream upstream{mib(64)};
  testing::ManualProgress progress;
  Pool pool{{upstream, progress}, options()};
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

}  // namespace
}  // namespace weir
