#pragma once

// One training run from settings to figures, on a device of its own: the d2l experiment's loop, or
// a data set's, whose test files are classified at the end.

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

/// What a batch left behind when its work was submitted.
struct BatchSample {
  Bytes held{};     ///< allocated + awaiting in the pool
  Bytes staging{};  ///< host memory in staging buffers
};

enum class Outcome : std::uint8_t { kFinished, kOutOfMemory, kInterrupted };

struct TrainResult {
  Outcome outcome = Outcome::kFinished;
  std::string report;         ///< of the out-of-memory
  std::uint64_t batches = 0;  ///< submitted whole
  /// From the first batch to the end of the last on the device; the test is not in it.
  double seconds = 0;
  /// That time on CLOCK_MONOTONIC, which timelines have too, in nanoseconds.
  std::uint64_t measured_from = 0, measured_to = 0;
  double idle_share = 0;         ///< of the compute stream in that time
  std::uint64_t operations = 0;  ///< enqueued in the whole run
  /// What the frontend needs to submit a batch, without the time that it is held back; the median.
  double host_seconds = 0;
  Statistics pool;  ///< peaks are of the whole run
  AdmissionStatistics admission;
  Stalls stalls;    ///< every time that dispatch was held back, for whatever reason
  Bytes staging{};  ///< most host memory in staging buffers
  std::optional<double> mean_loss;
  std::vector<std::vector<float>> weights;  ///< once all batches are trained
  std::vector<BatchSample> samples;         ///< one per batch

  /// Of its timeline, where there is one.
  std::optional<timeline::RecordingResult> recording{};

  bool testing = false;            ///< it came to the test files
  std::uint64_t test_batches = 0;  ///< submitted whole
  std::uint64_t test_images = 0;   ///< in them
  /// Share of the test images whose label has the largest logit; only when all were classified.
  std::optional<double> test_accuracy;

  [[nodiscard]] double batches_per_second() const {
    return seconds > 0 ? static_cast<double>(batches) / seconds : 0;
  }
};

struct TrainHooks {
  std::stop_token stop{};  ///< the run ends after the batch under way, with the figures so far
  std::function<void(std::uint64_t done, std::uint64_t all)> progress{};
};

/// Runs. Out-of-memory and interruption are outcomes, not exceptions; UsageError for settings that
/// cannot work. Sets the BLAS to one thread, since its results depend on the number.
[[nodiscard]] TrainResult train(const TrainSettings& settings, const TrainHooks& hooks = {});

/// Whether the loss or a weight is no finite number: what was trained is of no use.
[[nodiscard]] bool diverged(const TrainResult& result);
/// `finished`, `diverged`, `out of memory in batch 14`, `interrupted after 3 batches`, `… 3 test
/// batches`.
[[nodiscard]] std::string describe_outcome(const TrainResult& result);

}  // namespace weir
