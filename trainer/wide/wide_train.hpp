#pragma once

// One run of the wide network from settings to figures, on its own device.

#include <functional>
#include <stop_token>

#include "trainer/wide/wide_result.hpp"
#include "trainer/wide/wide_settings.hpp"

namespace weir {

struct WideHooks {
  std::stop_token stop{};  ///< the run ends after the current batch, with the figures so far
  std::function<void(std::uint64_t done, std::uint64_t all)> on_done{};
  std::function<void(const PaceLine&)> on_pace{};
  bool read_weights = false;  ///< sets `run.weights` once all batches are trained
  /// The ranks among which this process trains as the settings say; null: alone. Then every rank
  /// calls this, and none may stop: it would leave the others waiting. They must agree on
  /// agreed_fields. Not finished here.
  Communicator* ranks = nullptr;
};

/// Runs with settled settings. Out-of-memory and interruption are outcomes, not exceptions. Throws
/// UsageError for settings that cannot work. Sets the BLAS to one thread, since its results depend
/// on the number.
[[nodiscard]] WideResult train_wide(const WideSettings& settings, const WideHooks& hooks = {});

/// Trains again in float32, with the stop and the ranks of `hooks`, and keeps the figures to
/// compare with in `result`. Does nothing unless that run finished.
void compare_with_float32(WideResult& result, WideSettings settings, const WideHooks& hooks);

/// Returns the deviation that WideOptions asks for: that of the rows of the source's first batch.
[[nodiscard]] float input_deviation(const SparseSource& source);

}  // namespace weir
