// Training with a GPU's code: the stand-in driver and cuBLAS, and the real kernels compiled for the
// host. Their results are real, and compared with the cpu device's.

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <future>
#include <optional>
#include <thread>

#include "support/gate.hpp"
#include "trainer/data/reader.hpp"
#include "trainer/digits.hpp"
#include "trainer/jobs.hpp"
#include "trainer/standin_trainer.hpp"

namespace weir::testing {
namespace {

using LayerWeights = std::vector<std::vector<float>>;

TrainSettings gpu_job() {
  TrainSettings settings = tiny_job();
  settings.device.value = "cuda";
  settings.batches.value = 12;
  return settings;
}

class StandinTraining : public StandinTrainer {};

TEST_F(StandinTraining, GivesTheSameWeightsUnderEveryPolicyAndPool) {
  std::optional<LayerWeights> expected;
  for (const Policy policy : kAllPolicies) {
    for (const PoolKind pool : kAllPools) {
      SCOPED_TRACE(std::string(to_string(policy)) + ", " + std::string(to_string(pool)));
      TrainSettings settings = gpu_job();
      settings.pool.kind.value = pool;
      const TrainResult run = finished(train_with(settings, policy));
      if (!expected) expected = run.weights;
      EXPECT_EQ(run.weights, *expected);
    }
  }
}

TEST_F(StandinTraining, AgreesWithTheCpuDevice) {
  for (const double momentum : {0.0, 0.9}) {
    for (const InputKind inputs : {InputKind::kHost, InputKind::kRing, InputKind::kDrawn}) {
      SCOPED_TRACE(std::string(to_string(inputs)) + ", momentum " + std::to_string(momentum));
      TrainSettings settings = gpu_job();
      settings.momentum.value = momentum;
      settings.inputs.value = inputs;
      const TrainResult gpu = train(settings);
      settings.device.value = "cpu";
      const TrainResult cpu = train(settings);
      ASSERT_EQ(gpu.outcome, Outcome::kFinished) << gpu.report;
      ASSERT_EQ(cpu.outcome, Outcome::kFinished) << cpu.report;
      // Only the products may be rounded differently, because of the matrices' layout.
      EXPECT_LE(relative_difference(gpu.weights, cpu.weights), 1e-5);
      EXPECT_NEAR(*gpu.mean_loss, *cpu.mean_loss, 1e-4 * std::abs(*cpu.mean_loss));
    }
  }
}

TEST_F(StandinTraining, DrawsTheSameNumbersOnTheDeviceAsAReaderDoes) {
  TrainSettings settings = gpu_job();
  const TrainResult read = train(settings);
  settings.inputs.value = InputKind::kDrawn;
  const TrainResult drawn = finished(train(settings));
  EXPECT_EQ(drawn.weights, read.weights);
}

TEST_F(StandinTraining, HostTimeLeavesOutWhatHeldDispatchBack) {
  weir_standin_delay(weir_standin_all_streams(), 1'000'000);
  const TrainResult run = finished(train_with(gpu_job(), Policy::kBarrier));
  EXPECT_GT(run.host_seconds, 0);
  EXPECT_LT(run.host_seconds, run.seconds / static_cast<double>(run.batches) / 2)
      << "the barrier waits for more than ten operations of a millisecond each";
}

/// Waits until the frontend has polled the device so often since this call that it must be waiting.
/// Returns false if it never comes so far. The device stands still meanwhile.
bool await_frontend_waiting() {
  const std::uint64_t enough = weir_standin_calls("cuEventQuery") + 100;
  constexpr int kLooks = 3000;
  for (int look = 0; look < kLooks && weir_standin_calls("cuEventQuery") < enough; ++look) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return weir_standin_calls("cuEventQuery") >= enough;
}

/// A run that is stopped, some batches from its start, while the device stands still and blocks the
/// frontend. Only the frontend may poll the device: its inputs are made beforehand. `seen` says
/// whether it was seen to wait before the stop: it may also wait without polling.
TrainResult train_and_stop_while_held_back(TrainSettings settings, bool& seen) {
  settings.batches.value = 1'000'000;
  std::uint64_t delay = 200'000;
  weir_standin_delay(weir_standin_all_streams(), delay);
  std::stop_source stop;
  Gate held;
  held.open();
  bool holds = false;
  // From here on submitted work stays queued.
  const auto hold = [&](std::uint64_t done, std::uint64_t /*all*/) {
    if (done < 3 || holds) return;
    weir_standin_hold(weir_standin_all_streams());
    // Running work still ends: with nothing else queued, the frontend would not be blocked.
    if (weir_standin_pending(weir_standin_all_streams()) < 8) {
      weir_standin_release(weir_standin_all_streams());
      weir_standin_delay(weir_standin_all_streams(), delay += delay / 8);  // the host is slow
      return;
    }
    holds = true;
    held.pass();
  };
  auto interrupter = std::async(std::launch::async, [&] {
    held.await_arrival();
    seen = await_frontend_waiting();
    stop.request_stop();
    (void)await_frontend_waiting();
    weir_standin_release(weir_standin_all_streams());
  });
  TrainResult run = train(settings, {.stop = stop.get_token(), .on_done = hold});
  interrupter.get();
  weir_standin_delay(weir_standin_all_streams(), 0);
  return run;
}

void expect_figures_of_whole_batches(const TrainResult& run, TrainSettings settings) {
  EXPECT_EQ(run.outcome, Outcome::kInterrupted);
  EXPECT_EQ(run.samples.size(), run.batches);
  settings.batches.value = run.batches;
  settings.pool.budget.value = {.bytes = mib(64)};
  EXPECT_EQ(run.mean_loss, train(settings).mean_loss);
}

TrainSettings ring_job() {
  TrainSettings settings = gpu_job();
  settings.inputs.value = InputKind::kRing;
  settings.ring.value = 3;
  return settings;
}

TEST_F(StandinTraining, ABatchThatAStopFindsHeldBackAtItsBeginDoesNotCount) {
  TrainSettings settings = ring_job();
  settings.policy.run_ahead.value = {.batches = 1, .time = std::chrono::nanoseconds(-1)};
  bool seen = false;
  expect_figures_of_whole_batches(train_and_stop_while_held_back(settings, seen), settings);
  EXPECT_TRUE(seen) << "no batch was held back";
}

TEST_F(StandinTraining, ABatchThatAStopFindsWaitingForMemoryDoesNotCount) {
  TrainSettings settings = ring_job();
  settings.batch_size.value = 256;                   // so that tensors are larger than a slot
  settings.pool.kind.value = PoolKind::kUnpooled;    // each free awaits the device
  settings.policy.policy.value = Policy::kBackstop;  // begins at once, and waits in the batch
  const Footprint need = measure_footprint(settings);
  bool ever_seen = false;
  // The more memory there is, the later in the batch the wait is.
  for (std::uint64_t tenths = 10; tenths <= 20; tenths += 2) {
    SCOPED_TRACE(std::to_string(tenths) + " tenths of what a batch needs");
    settings.pool.budget.value = {.bytes = need.live + Bytes{need.batch.count * tenths / 10}};
    bool seen = false;
    expect_figures_of_whole_batches(train_and_stop_while_held_back(settings, seen), settings);
    ever_seen = ever_seen || seen;
  }
  EXPECT_TRUE(ever_seen) << "no batch waited for memory";
}

TEST_F(StandinTraining, PinsABufferForEachBatchThatIsOnItsWayAndNoMore) {
  TrainSettings settings = gpu_job();
  settings.batches.value = 40;
  constexpr std::uint64_t kSubmitted = 2;
  settings.policy.run_ahead.value = {.batches = kSubmitted, .time = std::chrono::nanoseconds(-1)};
  const TrainResult run = finished(train(settings, {}));
  const std::uint64_t pinned = weir_standin_calls("cuMemHostAlloc");
  EXPECT_GT(pinned, 0U) << "the batches lie in pinned memory";
  // Ready, being made, open, and submitted.
  EXPECT_LE(pinned, Reader::kPrefetch + 1 + 1 + kSubmitted);
}

TEST_F(StandinTraining, WithStaticMemoryHasTheSameWeightsAndCapturesOneGraphForEachPlaceOfInputs) {
  for (const InputKind inputs : {InputKind::kHost, InputKind::kDrawn}) {
    TrainSettings settings = gpu_job();
    settings.momentum.value = 0.9;
    settings.inputs.value = inputs;
    const TrainResult expected = train(settings);
    settings.memory.value = StaticMemory::kAlloc;
    EXPECT_EQ(train(settings).weights, expected.weights);
    EXPECT_EQ(weir_standin_calls("cuGraphLaunch"), 0U);
    settings.memory.value = StaticMemory::kShape;
    const TrainResult run = finished(train(settings));
    EXPECT_EQ(run.weights, expected.weights);
    EXPECT_EQ(run.mean_loss, expected.mean_loss);
    EXPECT_EQ(run.static_memory->captures, 2U);
    EXPECT_EQ(weir_standin_calls("cuGraphLaunch"), run.batches - 1);
    EXPECT_EQ(weir_standin_live().graphs, 0U);
    weir_standin_reset();
  }
}

TEST_F(StandinTraining, CapturesAgainWhereTheShapeChanges) {
  TrainSettings settings;
  settings.device.value = "cuda";
  settings.use_data_defaults();
  settings.batch_size.value = 256;  // 603 images: the third batch is short
  settings.pool.budget.value = {.bytes = mib(64)};
  settings.epochs.value = 5;
  settings.use_data(digit_set(), {"digits", "test"});
  const TrainResult expected = train(settings);
  settings.memory.value = StaticMemory::kShape;
  const TrainResult run = finished(train(settings));
  EXPECT_EQ(run.weights, expected.weights);
  EXPECT_EQ(run.static_memory->batches, run.batches - 2);
  EXPECT_EQ(run.static_memory->captures, 4U)
      << "two shapes in two places; the first batch of a shape is not captured";
}

TEST_F(StandinTraining, AGraphThatFailsEndsTheRunWithThatErrorAndNothingIsLeft) {
  for (const char* call : {"cuStreamBeginCapture", "cuGraphInstantiate", "cuGraphLaunch"}) {
    TrainSettings settings = gpu_job();
    settings.memory.value = StaticMemory::kShape;
    weir_standin_fail(call, 1, CUDA_ERROR_NOT_SUPPORTED, kWeirStandinOnce);
    try {
      (void)train(settings);
      ADD_FAILURE() << call << " was not seen to fail";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("cudaErrorNotSupported"), std::string::npos)
          << error.what();
    }
    EXPECT_EQ(weir_standin_live().graphs, 0U) << call;
  }
}

TEST_F(StandinTraining, ChargesTheWorkspaceToTheBudget) {
  TrainSettings settings = gpu_job();
  settings.device.value = "cpu";
  const Bytes cpu = train(settings).pool.held.peak;
  settings.device.value = "cuda";
  const TrainResult gpu = train(settings);
  EXPECT_GE(gpu.pool.held.peak, cpu + mib(4));
  EXPECT_GE(Bytes{weir_standin_peak(0)}, gpu.pool.reserved.peak)
      << "what the statistics say was had of the driver";
}

TEST_F(StandinTraining, EndsWithAReportWhereTheBudgetIsTooSmall) {
  TrainSettings settings = gpu_job();
  settings.pool.budget.value = {.bytes = mib(4)};  // the workspace alone
  const TrainResult run = train(settings);
  EXPECT_EQ(run.outcome, Outcome::kOutOfMemory);
  EXPECT_NE(run.report.find("workspace"), std::string::npos) << run.report;
}

}  // namespace
}  // namespace weir::testing
