// Training on a data set, and inference with the result.

#include <gtest/gtest.h>

#include "support/message_of.hpp"
#include "trainer/compare/compare.hpp"
#include "trainer/data/batches.hpp"
#include "trainer/digits.hpp"
#include "trainer/expect_parts.hpp"
#include "trainer/jobs.hpp"
#include "trainer/reference_mlp.hpp"
#include "trainer/run/predict.hpp"

namespace weir::testing {
namespace {

/// Ten digits: a guess is right once in ten times.
constexpr double kChance = 0.1;

TrainSettings digits_job(std::uint64_t epochs) {
  TrainSettings settings;
  settings.use_data_defaults();
  settings.epochs.value = epochs;
  settings.pool.budget.value = {.bytes = mib(64)};
  settings.use_data(digit_set(), {"digits", "test"});
  return settings;
}

PredictSettings predict_job(const TrainSettings& trained, const TrainResult& run) {
  PredictSettings settings{.train = trained};
  settings.images = std::shared_ptr<const LabelledImages>(trained.data, &trained.data->test);
  settings.weights = {.widths = trained.widths, .parameters = run.weights};
  return settings;
}

TrainResult predict_with(PredictSettings settings, Policy policy) {
  settings.train.policy.policy.value = policy;
  return predict(settings);
}

SavedWeights zero_weights(std::vector<std::size_t> widths) {
  SavedWeights weights{.widths = std::move(widths), .parameters = {}};
  for (std::size_t l = 0; l + 1 < weights.widths.size(); ++l) {
    weights.parameters.emplace_back(weights.widths[l] * weights.widths[l + 1]);
    weights.parameters.emplace_back(weights.widths[l + 1]);
  }
  return weights;
}

class TrainingOnData : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { trained() = train(digits_job(8)); }
  /// The reference for the other policies and for inference.
  static TrainResult& trained() {
    static TrainResult result;
    return result;
  }
};

TEST_F(TrainingOnData, LearnsWhatTheTestImagesShow) {
  const TrainResult& run = trained();
  ASSERT_EQ(run.outcome, Outcome::kFinished) << run.report;
  EXPECT_EQ(run.batches, 80U);
  EXPECT_EQ(run.test_batches, 4U);
  EXPECT_EQ(run.test_images, 201U);
  EXPECT_GT(run.test_accuracy.value(), 8 * kChance);
}

TEST_F(TrainingOnData, WithoutLearningItIsNearChance) {
  TrainSettings settings = digits_job(1);
  settings.learning_rate.value = 1e-6;
  EXPECT_LT(train(settings).test_accuracy.value(), 4 * kChance);
}

TEST_F(TrainingOnData, WeightsAndAccuracyAreTheSameUnderEachPolicy) {
  for (const Policy policy : kAllPolicies) {
    SCOPED_TRACE(to_string(policy));
    const TrainResult run = train_with(digits_job(8), policy);
    EXPECT_EQ(run.weights, trained().weights);
    EXPECT_EQ(run.mean_loss, trained().mean_loss);
    EXPECT_EQ(run.test_accuracy, trained().test_accuracy);
  }
}

TEST_F(TrainingOnData, AlsoAtTheSmallestBudgetThatItFinishesIn) {
  TrainSettings settings = digits_job(8);
  settings.pool.budget.value = {.bytes = mib(4)};
  const Bytes smallest =
      smallest_budget(settings, Policy::kThrottled, settings.batches.value, kib(64)).value();
  for (const Policy policy : kBoundedPolicies) {
    SCOPED_TRACE(to_string(policy));
    const TrainResult run = train_at(digits_job(8), policy, smallest + kib(64));
    EXPECT_EQ(run.weights, trained().weights);
    EXPECT_EQ(run.test_accuracy, trained().test_accuracy);
    EXPECT_LE(run.pool.reserved.peak, smallest + kib(64));
  }
}

TEST_F(TrainingOnData, PredictAgreesWithTheRunThatTrainedUnderEachPolicy) {
  for (const Policy policy : kAllPolicies) {
    SCOPED_TRACE(to_string(policy));
    const TrainResult run = finished(predict_with(predict_job(digits_job(8), trained()), policy));
    EXPECT_EQ(run.test_images, 201U);
    EXPECT_EQ(run.test_accuracy, trained().test_accuracy);
    EXPECT_EQ(run.batches, 0U);
    EXPECT_EQ(run.admission.settled, 4U);
  }
}

TEST_F(TrainingOnData, PredictNeedsLessMemoryThanTrainingAndStaysInItsBudget) {
  PredictSettings settings = predict_job(digits_job(8), trained());
  settings.train.pool.budget.value = {.bytes = kib(768)};
  const TrainResult run = predict_with(settings, Policy::kThrottled);
  EXPECT_EQ(run.test_accuracy, trained().test_accuracy) << run.report;
  EXPECT_LE(run.pool.reserved.peak, kib(768));
  EXPECT_EQ(train_at(digits_job(1), Policy::kThrottled, kib(768)).outcome, Outcome::kOutOfMemory);
}

TEST_F(TrainingOnData, PredictReadsNothingBackBeforeItsEnd) {
  // Each batch has some milliseconds of work, which the host submits in some microseconds: all are
  // submitted before the first is done, unless a result were read.
  PredictSettings settings = predict_job(digits_job(1), trained());
  settings.weights = zero_weights({100, 2048, 2048, 10});
  const TrainResult run = finished(predict_with(settings, Policy::kUnbounded));
  EXPECT_GE(run.admission.most_submitted, 3U) << "of four";
  // With equal logits the first class, digit 0, is the answer for every image.
  EXPECT_DOUBLE_EQ(run.test_accuracy.value(), 21.0 / 201);
}

TEST_F(TrainingOnData, PredictWithoutRoomRunsOutWithTheReport) {
  for (const Bytes budget : {kib(16), kib(260)}) {
    PredictSettings settings = predict_job(digits_job(8), trained());
    settings.train.pool.budget.value = {.bytes = budget};
    const TrainResult run = predict(settings);
    EXPECT_EQ(run.outcome, Outcome::kOutOfMemory) << format_bytes(budget);
    EXPECT_EQ(describe_outcome(run), "out of memory in test batch 1");
    EXPECT_FALSE(run.report.empty());
    EXPECT_EQ(run.test_accuracy, std::nullopt);
  }
}

TEST_F(TrainingOnData, PredictIsHeldBackWhereUnboundedRunAheadRunsOut) {
  // 40 batches of a model that compute far longer than their submission takes. A host that is not
  // throttled would put their inputs into the memory of one.
  DataSet set{.train = digit_set()->train, .test = draw_digits(2000, 5), .classes = kDigits};
  TrainSettings base = digits_job(1);
  base.batch_size.value = 50;
  base.data = std::make_shared<const DataSet>(std::move(set));
  PredictSettings settings = predict_job(base, trained());
  settings.weights = zero_weights({100, 1024, 1024, 10});
  const TrainResult alone = predict_with(settings, Policy::kBarrier);
  settings.train.pool.budget.value = {.bytes = alone.pool.reserved.peak};
  for (const Policy policy : kBoundedPolicies) {
    SCOPED_TRACE(to_string(policy));
    const TrainResult run = finished(predict_with(settings, policy));
    EXPECT_EQ(run.test_accuracy, alone.test_accuracy);
    EXPECT_GT(run.stalls.count, 0U);
  }
  EXPECT_EQ(predict_with(settings, Policy::kUnbounded).outcome, Outcome::kOutOfMemory);
}

TEST_F(TrainingOnData, PredictThatIsStoppedClaimsNoAccuracy) {
  std::stop_source stop;
  const auto after_two = [&](std::uint64_t images, std::uint64_t /*all*/) {
    if (images == 128) stop.request_stop();
  };
  const TrainResult run = predict(predict_job(digits_job(8), trained()),
                                  {.stop = stop.get_token(), .on_done = after_two});
  EXPECT_EQ(run.outcome, Outcome::kInterrupted);
  EXPECT_EQ(describe_outcome(run), "interrupted after 2 test batches");
  EXPECT_EQ(run.test_images, 128U);
  EXPECT_EQ(run.test_accuracy, std::nullopt);
}

TEST_F(TrainingOnData, ARunThatIsStoppedIsNotTested) {
  const TrainResult run = train_stopped_at(digits_job(8), 5);
  EXPECT_EQ(describe_outcome(run), "interrupted after 5 batches");
  EXPECT_FALSE(run.testing);
  EXPECT_TRUE(run.weights.empty());
}

TEST_F(TrainingOnData, ARunThatIsStoppedInItsTestKeepsItsWeights) {
  const TrainResult run = train_stopped_at(digits_job(8), 80);  // all that it trains
  EXPECT_EQ(describe_outcome(run), "interrupted after 0 test batches");
  EXPECT_EQ(run.weights, trained().weights);
  EXPECT_EQ(run.test_accuracy, std::nullopt);
}

TEST_F(TrainingOnData, ABatchLargerThanTheSetIsTheWholeSet) {
  TrainSettings settings = digits_job(1);
  settings.batch_size.value = 1000;
  settings.batches.value = 3;
  const TrainResult run = finished(train(settings));
  EXPECT_EQ(run.test_batches, 1U);
  EXPECT_EQ(run.test_images, 201U);
}

/// The same epochs in double.
struct Reference {
  std::vector<Numbers> weights;
  double mean_loss = 0;
};
Reference train_on_digits(const TrainSettings& s) {
  ReferenceMlp model(s.widths, s.seed.value);
  Reference result;
  const std::size_t rows = s.batch_size.value;
  const BatchShape shape{
      .rows = rows, .inputs = s.widths.front(), .targets = 1, .rows_in_all = s.data->train.count};
  const BatchSource source = shuffled_source(s.data, rows, s.seed.value);
  for (std::uint64_t i = 0; i < s.batches.value; ++i) {
    std::vector<float> inputs(shape.rows_of(i) * shape.inputs);
    std::vector<float> labels(shape.rows_of(i));
    source(i, inputs, labels);
    const auto tape = model.forward(widened(inputs));
    auto [loss, slope] = ReferenceMlp::cross_entropy(tape.back(), widened(labels));
    result.mean_loss += loss / static_cast<double>(s.batches.value);
    model.step(model.backward(tape, std::move(slope)),
               double{static_cast<float>(s.learning_rate.value)}, 0);
  }
  result.weights = model.parameters;
  return result;
}

TEST_F(TrainingOnData, WeightsAndLossEqualTheFloat64Reference) {
  DataSet set{.train = draw_digits(35, 3), .test = draw_digits(10, 4), .classes = kDigits};
  TrainSettings settings = digits_job(1);
  settings.data = std::make_shared<const DataSet>(std::move(set));
  settings.widths = {kDigitSide * kDigitSide, 24, 12, kDigits};
  settings.batch_size.value = 16;  // the last batch of an epoch has three rows
  settings.batches.value = 12;
  const Reference reference = train_on_digits(settings);
  const TrainResult run = finished(train(settings));
  EXPECT_LE(largest_difference(run.weights, reference.weights), 5e-6);
  EXPECT_NEAR(run.mean_loss.value(), reference.mean_loss, 1e-5 * reference.mean_loss);
}

TEST(PredictSettings, WeightsForOtherPixelsOrFewerClassesAreRefused) {
  const DigitFiles files;
  const auto load = [&](const std::vector<std::size_t>& widths) {
    write_file(files.path("w"), encode_weights(zero_weights(widths)));
    PredictSettings settings;
    settings.load({files.directory(), "--data"}, {files.path("w"), "--weights"});
    return settings;
  };
  EXPECT_EQ(load({100, 10}).images->count, 201U);
  EXPECT_EQ(load({100, 12}).images->count, 201U) << "classes that no test image has";
  const auto refusal = [&](const std::vector<std::size_t>& widths) {
    return message_of<UsageError>([&] { (void)load(widths); });
  };
  expect_parts(refusal({99, 10}), {"--weights: " + files.path("w"),
                                   "expected weights for 100 pixels", "found 99 -> 10"});
  expect_parts(refusal({100, 9}), {"--data", "the classes of " + files.path("w")});
}

}  // namespace
}  // namespace weir::testing
