// Training with static memory gives the weights of training without.

#include <gtest/gtest.h>

#include "trainer/compare/compare.hpp"
#include "trainer/digits.hpp"
#include "trainer/expect_parts.hpp"
#include "trainer/jobs.hpp"
#include "trainer/report/report.hpp"

namespace weir::testing {
namespace {

TrainSettings with_memory(TrainSettings settings, StaticMemory memory) {
  settings.memory = {memory, "test"};
  return settings;
}

std::uint64_t pool_requests(const TrainResult& run) {
  return run.pool.hits + run.pool.misses + run.pool.handovers;
}

TEST(StaticMemoryRun, HasTheSameWeightsUnderEveryPolicyAndPool) {
  for (const double momentum : {0.0, 0.9}) {
    TrainSettings settings = tiny_job();
    settings.momentum.value = momentum;
    const TrainResult expected = train(settings);
    for (const Policy policy : kAllPolicies) {
      for (const PoolKind pool : kAllPools) {
        SCOPED_TRACE(std::string(to_string(policy)) + ", " + std::string(to_string(pool)));
        TrainSettings own = with_memory(settings, StaticMemory::kAlloc);
        own.pool.kind.value = pool;
        const TrainResult run = finished(train_with(own, policy));
        EXPECT_EQ(run.weights, expected.weights);
        EXPECT_EQ(run.mean_loss, expected.mean_loss);
        EXPECT_EQ(run.static_memory->batches, settings.batches.value - 1);
      }
    }
  }
}

TEST(StaticMemoryRun, HasTheSameWeightsForEveryKindOfInputs) {
  const TrainResult expected = train(scaled_job());
  for (const InputKind inputs : {InputKind::kHost, InputKind::kRing, InputKind::kDrawn}) {
    for (const StaticMemory memory : {StaticMemory::kAlloc, StaticMemory::kShape}) {
      TrainSettings settings = with_memory(scaled_job(), memory);
      settings.inputs.value = inputs;
      TrainSettings without = settings;
      without.memory.value = StaticMemory::kNone;
      EXPECT_EQ(train(settings).weights, train(without).weights) << to_string(inputs);
    }
  }
}

TEST(StaticMemoryRun, AsksThePoolForNothingAfterTheSecondBatch) {
  for (const double momentum : {0.0, 0.9}) {
    TrainSettings settings = with_memory(scaled_job(), StaticMemory::kAlloc);
    settings.momentum.value = momentum;
    settings.batches.value = 2;
    const std::uint64_t of_two = pool_requests(train(settings));
    settings.batches.value = 20;
    EXPECT_EQ(pool_requests(train(settings)), of_two);
    settings.memory.value = StaticMemory::kNone;
    EXPECT_GT(pool_requests(train(settings)), of_two + 18 * 5) << "the count sees requests";
  }
}

TEST(StaticMemoryRun, SubmitsThreeOperationsABatch) {
  TrainSettings settings = with_memory(tiny_job(), StaticMemory::kAlloc);
  settings.batches.value = 10;
  const std::uint64_t ten = train(settings).operations;
  settings.batches.value = 20;
  EXPECT_EQ(train(settings).operations, ten + 10 * 3) << "two copies and the batch";
}

TEST(StaticMemoryRun, TrainsOnADataSetWhoseLastBatchIsShort) {
  for (const double momentum : {0.0, 0.5}) {
    TrainSettings settings;
    settings.use_data_defaults();
    settings.epochs.value = 3;
    settings.momentum.value = momentum;
    settings.pool.budget.value = {.bytes = mib(64)};
    settings.use_data(digit_set(), {"digits", "test"});
    const TrainResult expected = train(settings);
    const TrainResult run = finished(train(with_memory(settings, StaticMemory::kAlloc)));
    EXPECT_EQ(run.weights, expected.weights);
    EXPECT_EQ(run.mean_loss, expected.mean_loss);
    EXPECT_EQ(run.test_accuracy, expected.test_accuracy);
    EXPECT_EQ(run.static_memory->batches, run.batches - 2) << "the first of each of two shapes";
  }
}

TEST(StaticMemoryRun, BackstopIsHeldBackByThePlacesOfInputs) {
  // The device needs some fifty times as long for a batch as the host.
  const TrainSettings settings = with_memory(device_bound_job(), StaticMemory::kAlloc);
  const TrainResult unbounded = train_at(settings, Policy::kUnbounded, mib(64));
  const TrainResult backstop = train_at(settings, Policy::kBackstop, mib(64));
  EXPECT_EQ(backstop.weights, unbounded.weights);
  // Two are copied, two wait for their places, and one was just begun.
  EXPECT_LE(backstop.admission.most_submitted, 5U);
  EXPECT_GT(unbounded.admission.most_submitted, 10U);
}

TEST(StaticMemoryRun, StopsWithTheFiguresOfThatLength) {
  const TrainResult run = train_stopped_at(with_memory(tiny_job(), StaticMemory::kShape), 5);
  EXPECT_EQ(run.outcome, Outcome::kInterrupted);
  TrainSettings five = tiny_job();
  five.batches.value = 5;
  EXPECT_EQ(run.mean_loss, train(five).mean_loss);
  EXPECT_EQ(run.admission.charged, Bytes{});
}

TEST(StaticMemoryRun, EndsWithTheReportWhereTheBudgetIsTooSmall) {
  const TrainSettings settings = with_memory(scaled_job(), StaticMemory::kAlloc);
  const Bytes enough =
      smallest_budget(settings, Policy::kThrottled, settings.batches.value, kib(16)).value();
  const TrainResult runs_out = train_at(settings, Policy::kThrottled, enough - kib(16));
  EXPECT_EQ(runs_out.outcome, Outcome::kOutOfMemory);
  EXPECT_FALSE(runs_out.report.empty());
  const TrainResult run = train_at(settings, Policy::kThrottled, enough);
  EXPECT_EQ(run.weights, train(scaled_job()).weights);
  EXPECT_LE(run.pool.reserved.peak, enough);
}

TEST(StaticMemoryRun, ShowsWhatItDid) {
  const TrainSettings settings = with_memory(tiny_job(), StaticMemory::kAlloc);
  const TrainResult run = train(settings);
  const std::string text = format_run(settings, run);
  EXPECT_NE(text.find("as one operation 29 batches"), std::string::npos) << text;
  EXPECT_NE(text.find("host per batch"), std::string::npos) << text;
  EXPECT_NE(settings_text(settings.lines()).find("static-alloc=1 (test)"), std::string::npos);
  EXPECT_NE(run_json(settings, run).find("\"batches_as_one_operation\": 29"), std::string::npos);
  EXPECT_EQ(format_run(tiny_job(), train(tiny_job())).find("static memory"), std::string::npos);
}

TEST(StaticMemoryRun, IsComparedBesideThePolicies) {
  CompareSettings settings{.train = tiny_job()};
  settings.rounds.value = 1;
  settings.search = false;
  settings.with_static = true;
  const Comparison c = compare(settings);
  ASSERT_EQ(c.policies.size(), 6U);
  EXPECT_EQ(c.policies[3].name, "static-alloc");
  EXPECT_EQ(c.policies[4].name, "static-shape");
  for (const PolicyFigures* f : {&c.policies[3], &c.policies[4]}) {
    EXPECT_EQ(f->last.outcome, Outcome::kFinished);
    EXPECT_EQ(f->last.static_memory->batches, settings.train.batches.value - 1);
    EXPECT_GT(f->host_seconds, 0);
    EXPECT_GT(f->ratio, 0) << "to the reference of throttled's round";
  }
  EXPECT_EQ(c.reference.runs, 3U);
  EXPECT_FALSE(c.policies[2].last.static_memory) << "throttled itself is as without";
  EXPECT_TRUE(c.identical);
  const std::string text = format_comparison(settings, c);
  expect_parts(text, {"host time per batch, us: ", "static-alloc ", "static-shape "});
}

}  // namespace
}  // namespace weir::testing
