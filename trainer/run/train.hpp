#pragma once

// One training run from settings to figures, on its own device: the d2l experiment's loop, or a
// data set's, which also classifies the test files at the end.

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "allocator/statistics.hpp"
#include "scheduler/admission/admission.hpp"
#include "tools/timeline/recorder/recorder.hpp"
#include "trainer/run/settings.hpp"

namespace weir {

/// The state when a batch's work was submitted.
struct BatchSample {
  Bytes held{};     ///< allocated + awaiting in the pool
  Bytes staging{};  ///< host memory in staging buffers
};

/// What static memory did.
struct StaticFigures {
  Bytes arena{};
  std::uint64_t batches = 0;   ///< submitted as one operation
  std::uint64_t captures = 0;  ///< by a GPU
};

enum class Outcome : std::uint8_t { kFinished, kOutOfMemory, kInterrupted };

struct TrainResult {
  Outcome outcome = Outcome::kFinished;
  std::string report;         ///< of an out-of-memory
  std::uint64_t batches = 0;  ///< submitted completely
  /// From the first batch to the end of the last on the device, without the test.
  double seconds = 0;
  /// The same interval on CLOCK_MONOTONIC, like timelines, in nanoseconds.
  std::uint64_t measured_from = 0, measured_to = 0;
  double idle_share = 0;                   ///< of the compute stream in that interval
  std::chrono::nanoseconds caused_idle{};  ///< of it, in that interval, by throttling
  std::uint64_t operations = 0;            ///< enqueued in the whole run
  /// The frontend's time to submit a batch, without stalls; the median.
  double host_seconds = 0;
  Statistics pool;  ///< peaks over the whole run
  AdmissionStatistics admission;
  Stalls barriers;  ///< waits for the device that the program asked for
  Stalls stalls;    ///< all stalls of dispatch, for any reason
  Bytes staging{};  ///< most host memory in staging buffers
  std::optional<StaticFigures> static_memory{};  ///< if the settings asked for it
  std::optional<double> mean_loss;
  std::vector<std::vector<float>> weights;  ///< set once all batches are trained
  std::vector<BatchSample> samples;         ///< one per batch

  /// Its timeline's, if there is one.
  std::optional<timeline::RecordingResult> recording{};

  bool testing = false;            ///< the test began
  std::uint64_t test_batches = 0;  ///< submitted completely
  std::uint64_t test_images = 0;   ///< in those batches
  /// Share of the test images whose label has the largest logit; set only if all were classified.
  std::optional<double> test_accuracy;

  [[nodiscard]] double batches_per_second() const {
    return seconds > 0 ? static_cast<double>(batches) / seconds : 0;
  }
};

struct TrainHooks {
  std::stop_token stop{};  ///< the run ends after the current batch, with the figures so far
  std::function<void(std::uint64_t done, std::uint64_t all)> on_done{};
};

/// Runs. Out-of-memory and interruption are outcomes, not exceptions. Throws UsageError for
/// settings that cannot work. Sets the BLAS to one thread, since its results depend on the number.
[[nodiscard]] TrainResult train(const TrainSettings& settings, const TrainHooks& hooks = {});

/// Whether the loss or a weight is not finite: the training is useless.
[[nodiscard]] bool diverged(const TrainResult& result);
/// Returns `finished`, `diverged`, `out of memory in batch 14`, `interrupted after 3 batches`, `… 3
/// test batches`.
[[nodiscard]] std::string describe_outcome(const TrainResult& result);

}  // namespace weir
