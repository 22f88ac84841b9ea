#pragma once

// What a wide run shows.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "allocator/base/bytes.hpp"
#include "scheduler/scheduler.hpp"
#include "trainer/checkpoint/checkpointer.hpp"
#include "trainer/run/train.hpp"

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

}  // namespace weir
