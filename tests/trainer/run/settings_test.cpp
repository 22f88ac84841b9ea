// The sources of settings; for flags see cli_run_test.cpp.

#include "trainer/run/settings.hpp"

#include <gtest/gtest.h>

#include "allocator/base/error.hpp"
#include "scheduler/device/cpu_device.hpp"
#include "support/environment.hpp"
#include "support/message_of.hpp"
#include "support/print.hpp"

namespace weir::testing {
namespace {

void expect_in_line(const TrainSettings& settings, const std::string& part) {
  const std::string line = settings_text(settings.lines());
  EXPECT_NE(line.find(part), std::string::npos) << line;
  EXPECT_EQ(line.find('\n'), std::string::npos) << line;
}

TEST(TrainSettings, DefaultsAreTheD2lExperiment) {
  const TrainSettings settings = TrainSettings::from_environment(environment_of({}));
  EXPECT_EQ(settings.widths, (std::vector<std::size_t>{512, 2048, 512, 1}));
  EXPECT_EQ(settings.batch_size.value, 1024U);
  EXPECT_EQ(settings.learning_rate.value, 0.005);
  EXPECT_EQ(settings.policy.policy.value, Policy::kThrottled);
  for (const char* part : {"policy=throttled (default)", "budget=95% (default)",
                           "pool=round (default)", "run-ahead=auto (default)"}) {
    expect_in_line(settings, part);
  }
}

TEST(TrainSettings, OursComeFromTheEnvironmentAndNameTheirVariables) {
  const TrainSettings settings =
      TrainSettings::from_environment(environment_of({{"WEIR_BUDGET", "96MiB"},
                                                      {"WEIR_POOL", "naive"},
                                                      {"WEIR_POLICY", "barrier"},
                                                      {"WEIR_RUN_AHEAD", "3"}}));
  EXPECT_EQ(settings.pool.budget.value, (BudgetRequest{.bytes = mib(96)}));
  EXPECT_EQ(settings.policy.policy.value, Policy::kBarrier);
  for (const char* part :
       {"budget=96MiB (WEIR_BUDGET)", "pool=naive (WEIR_POOL)", "policy=barrier (WEIR_POLICY)",
        "run-ahead=3 (WEIR_RUN_AHEAD, not used by barrier)"}) {
    expect_in_line(settings, part);
  }
}

TEST(TrainSettings, RunAheadIsShownInForceOnlyWhereAPolicyUsesIt) {
  TrainSettings settings;
  expect_in_line(settings, "run-ahead=auto (default)");
  for (const Policy policy : {Policy::kBackstop, Policy::kUnbounded, Policy::kBarrier}) {
    settings.policy.policy.value = policy;
    EXPECT_EQ(settings_text(settings.lines()).find("run-ahead"), std::string::npos)
        << settings_text(settings.lines());
  }
  settings.every_policy = true;
  expect_in_line(settings, "run-ahead=auto (default)");
}

TEST(TrainSettings, DataBringsItsOwnDefaultsAndWhatWasGivenWins) {
  TrainSettings settings;
  settings.use_data_defaults();
  EXPECT_EQ(settings.batch_size.value, 64U);
  EXPECT_EQ(settings.learning_rate.value, 0.1);
  settings = {};
  settings.batch_size = {7, "--batch-size"};
  settings.learning_rate = {0.5, "--lr"};
  settings.use_data_defaults();
  EXPECT_EQ(settings.batch_size.value, 7U);
  EXPECT_EQ(settings.learning_rate.value, 0.5);
}

TEST(TrainSettings, EpochsSetTheBatchesUnlessThoseWereGiven) {
  const auto data = std::make_shared<const DataSet>(
      DataSet{.train = {.count = 100, .rows = 3, .columns = 4}, .test = {}, .classes = 5});
  TrainSettings settings;
  settings.use_data_defaults();
  settings.epochs = {3, "--epochs"};
  settings.use_data(data, {"digits", "--data"});
  EXPECT_EQ(settings.widths, (std::vector<std::size_t>{12, 256, 128, 5}));
  EXPECT_EQ(settings.batches.value, 6U);
  for (const char* part : {"data=digits (--data)", "model=12 -> 256 -> 128 -> 5 (data)",
                           "epochs=3 (--epochs)", "batches=6 (epochs)"}) {
    expect_in_line(settings, part);
  }
  settings = {};
  settings.batches = {9, "--batches"};
  settings.use_data(data, {"digits", "--data"});
  EXPECT_EQ(settings.batches.value, 9U);
  EXPECT_EQ(settings_text(settings.lines()).find("epochs"), std::string::npos)
      << settings_text(settings.lines());
}

TEST(TrainSettings, MxnetsVariablesSetVerbatimTakeEffect) {
  const TrainSettings settings = TrainSettings::from_environment(environment_of(
      {{"MXNET_GPU_MEM_POOL_TYPE", "Round"}, {"MXNET_GPU_MEM_POOL_ROUND_LINEAR_CUTOFF", "28"}}));
  expect_in_line(settings, "pool=round (MXNET_GPU_MEM_POOL_TYPE)");
  expect_in_line(settings, "linear-cutoff=28 (MXNET_GPU_MEM_POOL_ROUND_LINEAR_CUTOFF)");
  // Powers of two up to 256 MiB now; with the default they end at 16 MiB.
  EXPECT_EQ(settings.pool.block_size(mib(40)), mib(64));
  EXPECT_EQ(PoolOptions{}.block_size(mib(40)), mib(48));
}

TEST(TrainSettings, OfMxnetsVariablesAGpuTakesThoseOfItsContextAlone) {
  const Environment both = environment_of({{"MXNET_CPU_MEM_POOL_ROUND_LINEAR_CUTOFF", "26"},
                                           {"MXNET_GPU_MEM_POOL_ROUND_LINEAR_CUTOFF", "28"}});
  EXPECT_EQ(TrainSettings::from_environment(both).pool.cutoff.value, 26U);
  for (const char* gpu : {"cuda", "cuda:1"}) {
    const TrainSettings settings = TrainSettings::from_environment(both, {gpu, "--device"});
    EXPECT_EQ(settings.pool.cutoff.value, 28U);
    EXPECT_EQ(settings.device.value, gpu);
  }
}

TEST(TrainSettings, TheLineSaysWhereGeneratedBatchesComeFromAndHowWideTheModelIs) {
  TrainSettings settings;
  expect_in_line(settings, "inputs=host (default), width-factor=1 (default)");
  settings.inputs = {InputKind::kRing, "--inputs"};
  settings.ring = {5, "--ring"};
  settings.width_factor = {16, "--width-factor"};
  expect_in_line(settings, "inputs=ring (--inputs), ring=5 (--ring), width-factor=16");
  settings.inputs.value = InputKind::kDrawn;
  expect_in_line(settings, "inputs=drawn (--inputs), width-factor");
}

TEST(TrainSettings, WideningMultipliesTheHiddenWidthsAlone) {
  TrainSettings settings;
  settings.widen();
  EXPECT_EQ(settings.widths, (std::vector<std::size_t>{512, 2048, 512, 1}));
  settings.width_factor.value = 16;
  settings.widen();
  EXPECT_EQ(settings.widths, (std::vector<std::size_t>{512, 32768, 8192, 1}));
  settings.widths = {10, 4};
  settings.widen();
  EXPECT_EQ(settings.widths, (std::vector<std::size_t>{10, 4}));
  for (const char* factor : {"0", "1025", "-1", "1.5", ""}) {
    EXPECT_THROW((void)parse_width_factor("--width-factor", factor), UsageError) << factor;
  }
  EXPECT_EQ(parse_width_factor("--width-factor", "1024"), 1024U);
}

TEST(TrainSettings, ARingThatNothingWouldUseIsRefused) {
  for (const InputKind kind : {InputKind::kHost, InputKind::kDrawn}) {
    TrainSettings settings;
    settings.inputs.value = kind;
    EXPECT_NO_THROW(settings.validate());
    settings.ring = {8, "--ring"};
    const std::string message = message_of<UsageError>([&] { settings.validate(); });
    EXPECT_EQ(message, "--ring needs --inputs ring: " + std::string(to_string(kind)) +
                           " inputs have no ring");
    settings.inputs.value = InputKind::kRing;
    EXPECT_NO_THROW(settings.validate());
  }
}

TEST(TrainSettings, BatchesOfADataSetAreNeitherDrawnNorOfARing) {
  TrainSettings settings;
  settings.data = std::make_shared<const DataSet>();
  EXPECT_NO_THROW(settings.validate());
  for (const InputKind kind : {InputKind::kRing, InputKind::kDrawn}) {
    settings.inputs = {kind, "--inputs"};
    const std::string message = message_of<UsageError>([&] { settings.validate(); });
    EXPECT_TRUE(message.starts_with("--inputs " + std::string(to_string(kind)))) << message;
  }
}

TEST(TrainSettings, MoreMemoryThanTheDeviceHasNamesItsSource) {
  TrainSettings settings;
  settings.device_memory = {machine_memory(), "--device-memory"};
  EXPECT_NO_THROW(settings.validate());
  settings.device_memory.value = gib(1024) * 1024;
  const std::string message = message_of<UsageError>([&] { settings.validate(); });
  EXPECT_TRUE(message.starts_with("--device-memory='1024TiB' is not allowed: at most ")) << message;
}

TEST(TrainSettings, RatesAreTakenOnlyIfAFloatHoldsThem) {
  EXPECT_EQ(parse_rate("--lr", "0.005"), 0.005);
  for (const char* text : {"0", "-1", "nan", "inf", "abc", "", "1e300", "1e-300", "0.1x"}) {
    EXPECT_THROW((void)parse_rate("--lr", text), UsageError) << text;
  }
  EXPECT_EQ(parse_momentum("--momentum", "0.9"), 0.9);
  for (const char* text : {"1", "-0.1", "nan", "0.99999999999"}) {
    EXPECT_THROW((void)parse_momentum("--momentum", text), UsageError) << text;
  }
}

}  // namespace
}  // namespace weir::testing
