// How much of a model is copied beside a training, and that the training never fails for it.

#include <gtest/gtest.h>

#include "counting_run.hpp"
#include "support/print.hpp"
#include "trainer/checkpoint/checkpointer.hpp"

namespace weir::testing {
namespace {

constexpr std::size_t kSize = CountingRun::kBetween.count / sizeof(float);

TEST(Snapshot, WithRoomEverythingIsCopiedAndStaysAsItIs) {
  Rig rig;
  CountingRun run(rig, {kSize, 3});
  run.warm_up();
  const Snapshot snapshot = take_snapshot(rig.scheduler(), run.tensors(), "train");
  EXPECT_EQ(snapshot.held, 0U);
  run.batch();
  for (const Tensor& tensor : snapshot.tensors) EXPECT_EQ(rig->read(tensor).back(), 2);
  EXPECT_EQ(rig->read(run.tensors()[0].tensor).back(), 3);
}

TEST(Snapshot, IsOfTheBatchBeforeItThoughTheDeviceIsLate) {
  Rig rig({.run_ahead = {.batches = std::nullopt}});
  CountingRun run(rig, {3, 4});
  run.warm_up();
  Gate& batches = rig.hold(StreamRole::kCompute);
  run.batch();
  Gate& copies = rig.hold(StreamRole::kCompute2);
  const Snapshot snapshot = take_snapshot(rig.scheduler(), run.tensors(), "train");
  EXPECT_EQ(snapshot.held, 0U);
  run.batch();
  batches.open();
  give_others_a_chance();
  copies.open();
  for (const Tensor& tensor : snapshot.tensors) {
    EXPECT_EQ(rig->read(tensor), std::vector<float>(tensor.shape().elements(), 3));
  }
}

TEST(Snapshot, BeforeTheFirstBatchHasShownWhatItNeedsNothingIsCopied) {
  Rig rig;
  CountingRun run(rig, {3, 4});
  const Snapshot snapshot = take_snapshot(rig.scheduler(), run.tensors(), "train");
  EXPECT_EQ(snapshot.held, 2U);
  EXPECT_EQ(snapshot.tensors.size(), 2U);
}

// From a budget that just runs the training to one with room for all copies.
TEST(Snapshot, TheTrainingBesideItNeverFailsWhateverTheBudget) {
  std::size_t least = 9;
  for (const Policy policy : kAllPolicies) {
    std::size_t before = 9;
    for (std::uint64_t times = 6; times <= 12; ++times) {
      SCOPED_TRACE(times);
      Rig rig({.budget = CountingRun::kBetween * times, .policy = policy});
      CountingRun run(rig, {kSize, kSize, kSize, kSize});
      run.warm_up();
      const Snapshot snapshot = take_snapshot(rig.scheduler(), run.tensors(), "train");
      EXPECT_LE(snapshot.held, before) << "with more room";
      before = snapshot.held;
      const std::uint64_t then = run.done();
      for (int i = 0; i < 5; ++i) EXPECT_NO_THROW(run.batch());
      for (std::size_t i = snapshot.held; i < 4; ++i) {
        EXPECT_EQ(rig->read(snapshot.tensors[i]).front(), static_cast<float>(then));
      }
      EXPECT_NO_THROW(rig->wait_all());
      if (times == 6) {
        EXPECT_EQ(snapshot.held, 4U) << "two batches need the rest";
      }
    }
    least = std::min(least, before);
  }
  EXPECT_EQ(least, 0U);
}

TEST(Snapshot, WithoutRoomForAllTheLastTensorsAreCopied) {
  Rig rig({.budget = CountingRun::kBetween * 8});
  CountingRun run(rig, {kSize, kSize, kSize, kSize});
  run.warm_up();
  const Snapshot snapshot = take_snapshot(rig.scheduler(), run.tensors(), "train");
  EXPECT_EQ(snapshot.held, 2U);
  run.batch();
  EXPECT_EQ(rig->read(snapshot.tensors[1]).front(), 3) << "the run's own";
  EXPECT_EQ(rig->read(snapshot.tensors[2]).front(), 2);
  EXPECT_EQ(rig->read(snapshot.tensors[3]).front(), 2);
}

}  // namespace
}  // namespace weir::testing
