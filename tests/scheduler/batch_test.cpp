// Batches: their begin, their end and their charge.

#include <gtest/gtest.h>

#include <utility>

#include "rig.hpp"

namespace weir {
namespace {

using namespace testing;  // NOLINT: the fakes and helpers of the suite

/// One whole batch of this kind that holds `bytes` at its peak.
void run_batch(Rig& rig, Bytes bytes, std::string_view kind = "train") {
  const Batch batch = rig->begin_batch(kind);
  (void)rig.filled(bytes, 1);
}

Bytes charge_of(Rig& rig, std::string_view kind, const BatchOptions& options = {}) {
  const Batch batch = rig->begin_batch(kind, options);
  return rig->admission().charged;
}

TEST(Batch, OfANewKindIsChargedAllThatIsNotLiveThoughItIsExpectedToHoldLess) {
  Rig rig({.budget = mib(1)});
  const Tensor weights = rig.filled(kib(256), 1);
  EXPECT_EQ(charge_of(rig, "first"), kib(768));
  run_batch(rig, kib(128), "large");
  rig->wait_all();
  EXPECT_EQ(charge_of(rig, "new"), kib(768));
}

TEST(Batch, BegunInsideAnotherOfTheThreadJoinsIt) {
  Rig rig;
  Batch outer = rig->begin_batch("outer");
  {
    const Batch inner = rig->begin_batch("inner");
    EXPECT_TRUE(inner.joined());
    (void)rig.filled(kib(64), 1);
  }
  EXPECT_FALSE(outer.joined());
  EXPECT_EQ(rig->admission().open, 1U) << "the inner one closed nothing";
  outer.close();
  EXPECT_EQ(rig->admission().open, 0U);
  rig->wait_all();
  EXPECT_EQ(rig->admission().settled, 1U);
  EXPECT_EQ(charge_of(rig, "outer"), kib(64));
  run_batch(rig, kib(128), "larger");
  rig->wait_all();
  EXPECT_EQ(charge_of(rig, "inner"), rig.pool.budget()) << "nothing was learned of it";
}

TEST(Batch, OfAnotherSchedulerOnTheSameThreadIsItsOwn) {
  Rig rig;
  Rig other;
  const Batch a = rig->begin_batch("a");
  const Batch b = other->begin_batch("b");
  EXPECT_FALSE(b.joined());
  EXPECT_EQ(rig->admission().open, 1U);
  EXPECT_EQ(other->admission().open, 1U);
}

TEST(Batch, ClosesOnceHoweverOftenItIsAskedTo) {
  Rig rig;
  Batch batch = rig->begin_batch("train");
  batch.close();
  batch.close();
  batch.abandon();
  Batch moved = std::move(batch);
  moved.close();
  rig->wait_all();
  EXPECT_EQ(rig->admission().settled, 1U);
}

TEST(Batch, MovesAndClosesWhatItReplaces) {
  Rig rig;
  Batch batch = rig->begin_batch("one");
  Batch moved = std::move(batch);
  EXPECT_EQ(rig->admission().open, 1U);
  moved = Batch();
  EXPECT_EQ(rig->admission().open, 0U);
}

TEST(Batch, EndedByAnExceptionIsAbandonedAndTeachesNothing) {
  Rig rig({.budget = mib(1)});
  EXPECT_THROW(
      {
        const Batch batch = rig->begin_batch("train");
        (void)rig.filled(kib(128), 1);
        throw Broken("in the middle");
      },
      Broken);
  rig->wait_all();
  EXPECT_EQ(rig->admission().settled, 1U);
  EXPECT_EQ(charge_of(rig, "train"), mib(1)) << "the kind is still unknown";
}

TEST(Batch, AbandonedWhileAnExceptionIsHandledElsewhereIsStillClosedNormally) {
  Rig rig({.budget = mib(1)});
  try {
    throw Broken("outside");
  } catch (const Broken&) {
    run_batch(rig, kib(128));
  }
  rig->wait_all();
  EXPECT_EQ(charge_of(rig, "train"), kib(128));
}

TEST(Batch, WhatAnAbandonedBatchSubmittedStillRuns) {
  Rig rig;
  Tensor tensor;
  {
    Batch batch = rig->begin_batch("train");
    tensor = rig.filled(kib(4), 5);
    batch.abandon();
  }
  EXPECT_EQ(rig->read(tensor).front(), 5);
}

}  // namespace
}  // namespace weir
