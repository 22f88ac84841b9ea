// A point that was passed before its block became free is not reported again. Pools must know it
// all the same, those that join blocks among them.

#include <gtest/gtest.h>

#include "allocator/pool_fixture.hpp"

namespace weir {
namespace {

using testing::options_of;

struct PoolPassedPoint : testing::PoolFixture, ::testing::WithParamInterface<PoolKind> {
  Pool pool{memory(), options_of(mib(2), GetParam())};
};

TEST_P(PoolPassedPoint, MakesABlockEverybodysThatAwaitedAnotherStream) {
  void* const block = pool.allocate(mib(1), a);
  void* const rest = pool.allocate(mib(1), a);
  progress.enqueue(a);
  progress.enqueue(b);
  pool.record_use(block, b);
  EXPECT_EQ(pool.deallocate(block, a), Freed::kAwaiting);
  progress.pass_all(a);
  pool.poll();
  progress.pass_all(b);
  EXPECT_EQ(pool.allocate(mib(1), c), block);
  EXPECT_EQ(progress.dependencies().size(), 0U) << "there is nothing to wait for";
  pool.deallocate(block, c);
  pool.deallocate(rest, a);
}

TEST_P(PoolPassedPoint, LetsAllOfItGoBackToTheUpstream) {
  void* const block = pool.allocate(mib(2), a);
  pool.record_use(block, b);
  progress.enqueue(b);
  EXPECT_EQ(pool.deallocate(block, a), Freed::kAwaiting);
  progress.pass_all(a);
  pool.poll();
  progress.pass_all(b);
  EXPECT_EQ(pool.trim(), mib(2));
  EXPECT_EQ(upstream.used(), Bytes{});
}

INSTANTIATE_TEST_SUITE_P(Kinds, PoolPassedPoint, ::testing::ValuesIn(testing::kKeepingKinds),
                         testing::kind_name);

}  // namespace
}  // namespace weir
