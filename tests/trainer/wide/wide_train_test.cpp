// Runs of the wide network: memory, policies, precision, checkpoints.

#include "trainer/wide/wide_train.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <stop_token>
#include <thread>

#include "allocator/base/error.hpp"
#include "support/message_of.hpp"
#include "trainer/sparse/sparse_set.hpp"
#include "trainer/temporary_directory.hpp"
#include "trainer/wide/wide_jobs.hpp"

namespace weir::testing {
namespace {

TEST(WideTraining, LearnsFromItsRows) {
  WideSettings settings = tiny_wide();
  settings.train.batches = 400;
  settings.train.batch_size = 16;
  settings.train.learning_rate = 0.01;
  settings.pace = 100;
  const WideResult run = finished(train_wide(settings));
  ASSERT_EQ(run.pace.size(), 4U);
  EXPECT_LT(run.pace.back().mean_loss, run.pace.front().mean_loss);
  EXPECT_GT(run.pace.back().hit_share, run.pace.front().hit_share);
  EXPECT_GT(run.run.test_accuracy.value(), 1.5 / 30) << "better than a guess";
  EXPECT_EQ(run.run.test_images, 32U);
}

TEST(WideTraining, FinishesThrottledWithTwoBatchesWhereUnboundedRunsOut) {
  WideSettings settings = large_batches();
  settings.hidden =
      std::vector<std::size_t>{512, 1024};  // a batch takes far longer to compute than to make
  const WideMemory memory = memory_of(settings);
  ASSERT_GT(memory.batch, kib(600)) << "batches too small to show anything";
  const Bytes budget = memory.live + memory.batch * 2;
  const WideResult throttled = finished(train_with(settings, Policy::kThrottled, budget));
  EXPECT_LE(throttled.run.pool.reserved.peak, budget);
  settings.train.batches = 10'000;  // as many as it takes to run ahead, on a busy machine too
  const WideResult unbounded = train_with(settings, Policy::kUnbounded, budget);
  EXPECT_EQ(unbounded.run.outcome, Outcome::kOutOfMemory);
}

TEST(WideTraining, CopiesOnlyTheSparseBatchesAndTheFiguresOfTheLines) {
  WideSettings settings = tiny_wide();
  settings.pace = 10;
  const WideResult run = finished(train_wide(settings));
  EXPECT_EQ(run.to_host.bytes, Bytes{5 * 2 * sizeof(float)}) << "five lines of two figures";
  // 50 batches of 6 rows with at most 9 entries of four words, and some words for each row and
  // column.
  EXPECT_LE(run.to_device.bytes, Bytes{50 * 6 * (9 * 4 + 9 * 2 + 8) * sizeof(float)});
  EXPECT_GT(run.to_device.bytes, Bytes{});
}

TEST(WideTraining, StopsAfterABatchWithItsFigures) {
  WideSettings settings = tiny_wide();
  std::stop_source stop;
  const WideResult run = train_wide(
      settings, {.stop = stop.get_token(), .on_done = [&](std::uint64_t done, std::uint64_t) {
                   if (done == 7) stop.request_stop();
                 }});
  EXPECT_EQ(run.run.outcome, Outcome::kInterrupted);
  EXPECT_EQ(run.run.batches, 7U);
  EXPECT_TRUE(run.run.mean_loss.has_value());
  EXPECT_FALSE(run.run.test_accuracy.has_value());
}

TEST(WideTraining, StopsInTheMiddleOfALargeBatch) {
  WideSettings settings = tiny_wide();
  settings.hidden = std::vector<std::size_t>{1};
  settings.outputs = 3;
  settings.train.batch_size = 20'000'000;  // takes half a minute
  settings.train.pool.budget = BudgetRequest{.bytes = gib(1)};
  std::stop_source stop;
  std::jthread stopping([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    stop.request_stop();
  });
  const WideResult run = train_wide(settings, {.stop = stop.get_token()});
  EXPECT_EQ(run.run.outcome, Outcome::kInterrupted);
  EXPECT_EQ(run.run.batches, 0U);
}

TEST(WideTraining, RefusesABatchThatCanNeverFitBeforeItIsMade) {
  WideSettings settings = tiny_wide();
  settings.train.batch_size = {1'000'000'000, "--batch-size"};
  EXPECT_EQ(
      message_of<UsageError>([&] { (void)train_wide(settings); }),
      "--batch-size='1000000000' is not allowed: a batch that fits: what its layers compute is "
      "186 GiB, and the budget 64 MiB");
}

TEST(WideTraining, ShorterFormatsTrainAlmostAsWell) {
  WideSettings settings = tiny_wide();
  settings.train.batches = 200;
  settings.train.learning_rate = 0.01;
  const WideResult expected = train_to_weights(settings);
  for (const Precision precision : {Precision::kTf32, Precision::kBf16, Precision::kFp16}) {
    SCOPED_TRACE(to_string(precision));
    settings.precision = precision;
    const WideResult run = finished(train_to_weights(settings));
    EXPECT_NE(run.run.weights, expected.run.weights) << "it is another precision";
    EXPECT_NEAR(*run.run.mean_loss, *expected.run.mean_loss, 0.02 * *expected.run.mean_loss);
  }
}

/// The overflow is provoked by the largest scale: a fp16 gradient then exceeds 65504.
TEST(WideTraining, AnOverflowHalvesTheLossScaleAndTrainsOn) {
  WideSettings settings = tiny_wide();
  settings.precision = Precision::kFp16;
  settings.loss = SparseLoss::kLogistic;
  settings.train.batch_size = 1;  // a slope is up to 1, times 2^16
  const WideResult run = finished(train_wide(settings));
  EXPECT_GT(run.skipped_steps, 0U);
  EXPECT_LT(run.skipped_steps, settings.train.batches.value);
  EXPECT_EQ(run.loss_scale, 0x1p16F / static_cast<float>(1U << run.skipped_steps));
  EXPECT_TRUE(std::isfinite(*run.run.mean_loss));
}

/// A made data set of five batches of eight rows.
class WideData : public ::testing::Test {
 protected:
  WideData() {
    settings.train.batch_size = 8;
    make_sparse("--make", directory.file("data"), 40, settings.draw());
    settings.read_data({directory.file("data"), "--data"});
  }
  TemporaryDirectory directory;
  WideSettings settings = tiny_wide();
};

TEST_F(WideData, KeptOnTheDeviceIsCopiedOnce) {
  settings.train.batches = 5;
  const WideResult copied = train_to_weights(settings);
  settings.keep_data = DataPlace::kDevice;
  const WideResult kept = finished(train_to_weights(settings));
  EXPECT_EQ(kept.run.weights, copied.run.weights) << "the first epoch has the same batches";
  EXPECT_GT(copied.to_device.bytes, Bytes{});
  EXPECT_EQ(kept.to_device.bytes, Bytes{}) << "in the measured time";
  settings.train.batches = 12;
  EXPECT_EQ(train_wide(settings).run.outcome, Outcome::kFinished) << "its batches recur";
}

TEST_F(WideData, ThatDoesNotFitTheDeviceIsReported) {
  settings.keep_data = DataPlace::kDevice;
  settings.train.pool.budget = BudgetRequest{.bytes = kib(96)};
  const WideResult run = train_wide(settings);
  EXPECT_EQ(run.run.outcome, Outcome::kOutOfMemory);
  EXPECT_NE(run.run.report.find("budget"), std::string::npos) << run.run.report;
}

TEST(WideTraining, ShowsFloat32BesideAnotherPrecision) {
  WideSettings settings = tiny_wide();
  const WideResult expected = train_wide(settings);
  settings.precision = Precision::kBf16;
  WideResult run = train_wide(settings);
  compare_with_float32(run, settings, {});
  ASSERT_TRUE(run.float32.has_value());
  EXPECT_EQ(run.float32->mean_loss, expected.run.mean_loss);
  EXPECT_EQ(run.float32->test_accuracy, expected.run.test_accuracy);
}

class WideCheckpoints : public ::testing::Test {
 protected:
  WideCheckpoints() {
    settings.train.batches = 20;
    settings.checkpoint = {directory.file("saved"), "--checkpoint"};
    settings.every = CheckpointSchedule{.batches = 4};
  }
  /// Trains to the end in one go, and returns the last checkpoint's bytes.
  std::string uninterrupted() {
    const WideResult run = finished(train_wide(settings));
    EXPECT_EQ(run.checkpoints->last, std::optional<std::uint64_t>(20));
    const std::string bytes = read_file(settings.checkpoint.value);
    std::filesystem::remove(settings.checkpoint.value);
    return bytes;
  }
  /// Trains until `batches` are done, by a stop.
  void train_to(std::uint64_t batches) {
    std::stop_source stop;
    const WideResult run = train_wide(
        settings,
        {.stop = stop.get_token(), .on_done = [&](std::uint64_t done, std::uint64_t /*all*/) {
           if (done == batches) stop.request_stop();
         }});
    EXPECT_EQ(run.run.outcome, Outcome::kInterrupted);
    EXPECT_EQ(run.checkpoints->last, std::optional<std::uint64_t>(batches));
  }

  TemporaryDirectory directory;
  WideSettings settings = tiny_wide();
};

TEST_F(WideCheckpoints, AStoppedRunGoesOnWithTheSameBits) {
  for (const Precision precision : {Precision::kFloat32, Precision::kFp16}) {
    for (const Optimizer optimizer : {Optimizer::kMomentum, Optimizer::kAdamax}) {
      SCOPED_TRACE(std::string(to_string(precision)) + ", " + std::string(to_string(optimizer)));
      settings.precision = precision;
      settings.optimizer = optimizer;
      settings.resume = false;
      const std::string expected = uninterrupted();
      train_to(3);
      settings.resume = true;
      train_to(11);
      const WideResult rest = finished(train_wide(settings));
      EXPECT_EQ(rest.first, 11U);
      EXPECT_EQ(rest.run.batches, 9U);
      EXPECT_TRUE(read_file(settings.checkpoint.value) == expected)
          << "weights, moments, scale and position";
      std::filesystem::remove(settings.checkpoint.value);
    }
  }
}

TEST_F(WideCheckpoints, OfOtherSettingsAreRefused) {
  train_to(5);
  settings.resume = true;
  settings.train.seed = 99;
  EXPECT_THROW((void)train_wide(settings), UsageError);
}

TEST_F(WideCheckpoints, AFinishedRunIsOnlyTested) {
  (void)train_wide(settings);
  settings.resume = true;
  const WideResult again = train_wide(settings);
  EXPECT_EQ(again.run.outcome, Outcome::kFinished);
  EXPECT_EQ(again.run.batches, 0U);
  EXPECT_TRUE(again.run.test_accuracy.has_value());
  EXPECT_TRUE(again.saved);
  EXPECT_EQ(again.run.caused_idle.count(), 0) << "the test's stalls are not the training's";
}

}  // namespace
}  // namespace weir::testing
