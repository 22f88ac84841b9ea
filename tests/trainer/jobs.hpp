#pragma once

// Training jobs of sizes for tests, and their names in failures.

#include <array>
#include <cstdint>
#include <ostream>
#include <stdexcept>
#include <utility>

#include "scheduler/admission/policy.hpp"
#include "support/print.hpp"
#include "trainer/run/train.hpp"

namespace weir {

inline std::ostream& operator<<(std::ostream& out, Outcome outcome) {
  return out << (outcome == Outcome::kFinished      ? "finished"
                 : outcome == Outcome::kOutOfMemory ? "out of memory"
                                                    : "interrupted");
}

}  // namespace weir

namespace weir::testing {

inline constexpr std::array kAllPolicies{Policy::kThrottled, Policy::kBackstop, Policy::kUnbounded,
                                         Policy::kBarrier};
/// Policies that finish in a budget too small for unbounded run-ahead.
inline constexpr std::array kBoundedPolicies{Policy::kThrottled, Policy::kBackstop,
                                             Policy::kBarrier};
inline constexpr std::array kAllPools{PoolKind::kUnpooled, PoolKind::kNaive, PoolKind::kRound,
                                      PoolKind::kBestFit, PoolKind::kPaged};
/// Pools whose need is the same in each run. That of best_fit depends on where its holes are, which
/// depends on what the device has passed at each free.
inline constexpr std::array kExactPools{PoolKind::kUnpooled, PoolKind::kNaive, PoolKind::kRound,
                                        PoolKind::kPaged};

/// Small enough for a reference in plain loops: 16 → 32 → 8 → 1, batches of 8.
[[nodiscard]] inline TrainSettings tiny_job() {
  TrainSettings settings;
  settings.widths = {16, 32, 8, 1};
  settings.batch_size.value = 8;
  settings.batches.value = 30;
  settings.pool.budget.value = {.bytes = mib(64)};
  return settings;
}

/// The d2l model's proportions at an eighth of its widths and batch.
[[nodiscard]] inline TrainSettings scaled_job() {
  TrainSettings settings;
  settings.widths = {64, 256, 64, 1};
  settings.batch_size.value = 128;
  settings.batches.value = 10;
  settings.inputs.value = InputKind::kRing;
  settings.ring.value = 3;
  settings.pool.budget.value = {.bytes = mib(64)};
  return settings;
}

/// A job whose batches keep the device busy some fifty times as long as the host needs to submit
/// them, at a budget that bounds run-ahead: unbounded needs 256 KiB more for each batch that it is
/// ahead.
[[nodiscard]] inline TrainSettings device_bound_job() {
  TrainSettings settings;
  settings.widths = {256, 512, 256, 1};
  settings.batch_size.value = 256;
  settings.batches.value = 40;
  settings.inputs.value = InputKind::kRing;
  settings.ring.value = 3;
  settings.pool.budget.value = {.bytes = mib(5)};
  return settings;
}

/// The d2l experiment at its own size and a budget too small for unbounded run-ahead.
[[nodiscard]] inline TrainSettings d2l_job(std::uint64_t batches) {
  TrainSettings settings;
  settings.batches.value = batches;
  settings.pool.budget.value = {.bytes = mib(96)};
  return settings;
}

/// Returns a run that finished. Throws its report otherwise.
[[nodiscard]] inline TrainResult finished(TrainResult run) {
  if (run.outcome != Outcome::kFinished) throw std::runtime_error(run.report);
  return run;
}

[[nodiscard]] inline TrainResult train_with(TrainSettings settings, Policy policy) {
  settings.policy.policy.value = policy;
  return train(settings);
}
[[nodiscard]] inline TrainResult train_at(TrainSettings settings, Policy policy, Bytes budget) {
  settings.pool.budget.value = {.bytes = budget};
  return train_with(std::move(settings), policy);
}

/// Trains until so many batches are done, by a stop.
[[nodiscard]] inline TrainResult train_stopped_at(const TrainSettings& settings,
                                                  std::uint64_t batches) {
  std::stop_source stop;
  const auto on_done = [&](std::uint64_t done, std::uint64_t /*all*/) {
    if (done == batches) stop.request_stop();
  };
  return train(settings, {.stop = stop.get_token(), .on_done = on_done});
}

/// Memory of one batch beyond the live memory, from a run with enough memory.
struct Footprint {
  Bytes live{};
  Bytes batch{};
};
[[nodiscard]] inline Footprint measure_footprint(TrainSettings settings) {
  settings.batches.value = 2;
  const TrainResult run = train_at(std::move(settings), Policy::kBarrier, gib(1));
  const Bytes live = run.pool.held.current;
  return {.live = live, .batch = run.pool.held.peak - live};
}

}  // namespace weir::testing
