#pragma once

// Wide jobs with the first layer on a device of its own, and what crosses between the two devices.

#include <gtest/gtest.h>

#include "kernels/parts/step_state.hpp"
#include "trainer/wide/wide_jobs.hpp"

namespace weir::testing {

/// The same job with its first layer on the cpu.
[[nodiscard]] inline WideSettings placed(WideSettings settings) {
  settings.first_layer = LayerPlace::kCpu;
  settings.first_layer_budget = BudgetRequest{.bytes = mib(64)};
  return settings;
}

/// Returns the bytes that the training batches take to the device of the rest: the first layer's
/// outputs, and a packed batch without entries.
[[nodiscard]] inline Bytes bytes_to_rest(const WideSettings& settings) {
  std::uint64_t words = 0;
  for (std::uint64_t i = 0; i < settings.train.batches.value; ++i) {
    const SparseRows rows = batch_rows(settings, i);
    words += rows.rows() * settings.widths()[1];
    words += 2 * (rows.rows() + 1) + 1 + rows.labels.size();
  }
  return {words * sizeof(float)};
}

/// And back: the gradient at these outputs, that of the biases, and the step's state.
[[nodiscard]] inline Bytes bytes_to_first(const WideSettings& settings) {
  std::uint64_t words = 0;
  for (std::uint64_t i = 0; i < settings.train.batches.value; ++i) {
    words += (batch_rows(settings, i).rows() + 1) * settings.widths()[1] + kStepStateWords;
  }
  return {words * sizeof(float)};
}

/// Batches of some 600 KiB on the cpu, and 200 KiB on the other device.
[[nodiscard]] inline WideSettings large_placed_batches() {
  WideSettings settings = tiny_wide();
  settings.inputs = 2000;
  settings.hidden = std::vector<std::size_t>{512, 32};
  settings.outputs = 200;
  settings.nnz = 300;
  settings.train.batch_size = 128;
  settings.train.batches = 24;
  settings.test_batches = 1;
  return settings;
}

/// Runs the placed job with room for live memory and two batches on each device. Returns it with
/// these budgets.
inline WideSettings expect_throttled_in_two_batches(WideSettings settings) {
  WideSettings measured = settings;
  measured.train.batches = 2;
  measured.train.policy.policy = Policy::kBarrier;
  const WideResult alone = train_wide(measured);
  EXPECT_EQ(alone.run.outcome, Outcome::kFinished) << alone.run.report;
  const auto with_two = [](Bytes live, Bytes peak) { return live + (peak - live) * 2; };
  const Bytes rest = with_two(alone.memory.allocated, alone.run.pool.held.peak);
  const Bytes first = with_two(alone.placement->memory.allocated, alone.placement->held_peak);
  settings.train.pool.budget = BudgetRequest{.bytes = rest};
  settings.first_layer_budget = BudgetRequest{.bytes = first};
  settings.train.policy.policy = Policy::kThrottled;
  const WideResult throttled = train_wide(settings);
  EXPECT_EQ(throttled.run.outcome, Outcome::kFinished) << throttled.run.report;
  EXPECT_LE(throttled.run.pool.reserved.peak, rest);
  EXPECT_LE(throttled.placement->reserved_peak, first);
  const Bytes activations{settings.train.batch_size.value * settings.widths()[1] * sizeof(float)};
  EXPECT_LE(throttled.placement->staging, Bytes{16 * activations.count})
      << "what is on the way is bounded, too";
  return settings;
}

}  // namespace weir::testing
