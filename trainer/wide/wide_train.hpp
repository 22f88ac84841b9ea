#pragma once

// One run of the wide network from settings to figures, on its own device.

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "allocator/base/bytes.hpp"
#include "scheduler/scheduler.hpp"
#include "trainer/checkpoint/checkpointer.hpp"
#include "trainer/run/train.hpp"
#include "trainer/wide/wide_settings.hpp"

namespace weir {

/// Progress at the end of a batch on the device; sums are of the batches since the line before.
struct PaceLine {
  std::uint64_t batch = 0;  ///< of the whole training
  double seconds = 0;       ///< since the first batch of this run was begun
  double mean_loss = 0;
  double hit_share = 0;              ///< rows whose largest logit is one of their labels
  std::int64_t increased_bytes = 0;  ///< of the process's resident memory, since then
};

/// Copies in one direction in the measured time.
struct CopyFigures {
  Bytes bytes{};
  double seconds = 0;  ///< that the copy stream was busy
};

/// Host memory that the training's readers obtained for their batches. On a GPU it is pinned, which
/// stops the device each time.
struct HostMemoryFigures {
  std::uint64_t warm_up_batches = 0;  ///< after which the readers have used all their buffers
  Bytes warm_up{};
  Bytes later{};
};

/// What a first layer on another device shows, in the measured time.
struct PlacementFigures {
  MemoryInfo memory{};  ///< of its device, after the last batch
  Bytes reserved_peak{};
  Bytes held_peak{};
  CopyFigures to_rest;   ///< copies to the device of the rest
  CopyFigures to_first;  ///< and back
  Bytes staging{};       ///< host memory on the way
};

/// What is compared between precisions.
struct PrecisionFigures {
  std::optional<double> mean_loss;
  std::optional<double> test_accuracy;
  double seconds = 0;
};

/// What this rank sent in training.
struct RanksFigures {
  int ranks = 1;
  std::string engine;
  std::string step;              ///< the formula of a step's bytes
  std::uint64_t sent = 0;        ///< bytes, measured
  std::uint64_t by_formula = 0;  ///< of the same batches
};

struct WideResult {
  /// `batches` are those of this run, and the test's images are rows.
  TrainResult run;
  std::uint64_t parameters = 0;
  CopyFigures to_device;
  CopyFigures to_host;
  HostMemoryFigures host_memory;
  MemoryInfo memory{};  ///< after the last batch
  std::optional<PlacementFigures> placement;
  std::vector<PaceLine> pace;
  std::optional<double> hit_share;  ///< of the training rows
  std::uint32_t skipped_steps = 0;
  float loss_scale = 1;                             ///< at the end
  std::uint64_t first = 0;                          ///< batches that were done before this run
  std::optional<PrecisionFigures> float32;          ///< of the same training in float32
  std::optional<Outcome> float32_outcome;           ///< of that
  std::optional<CheckpointStatistics> checkpoints;  ///< if it writes some
  std::optional<RanksFigures> ranks;                ///< if it is one of several
  bool saved = true;  ///< whether the checkpoint, if there is one, has the last batch
};

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
