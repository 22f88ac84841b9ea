#pragma once

// Inference with saved weights on the test files of a data set.

#include <memory>
#include <string>
#include <vector>

#include "trainer/data/idx.hpp"
#include "trainer/model/weights.hpp"
#include "trainer/run/train.hpp"

namespace weir {

struct PredictSettings {
  TrainSettings train;  ///< the device, the budget, the pool, the policy and the batch size
  std::shared_ptr<const LabelledImages> images{};
  Setting<std::string> data_directory{};
  Setting<std::string> weights_file{};
  SavedWeights weights{};

  /// Reads the test files and the weights. Throws UsageError for either, or if they do not match.
  void load(Setting<std::string> data, Setting<std::string> file);
  /// Returns the files that were read.
  [[nodiscard]] std::vector<NamedPath> files() const;
  /// Returns all settings in force.
  [[nodiscard]] std::vector<SettingLine> lines() const;
};

/// Classifies the test images, as `train` does after training. `batches` is 0, `seconds` is the
/// test's time, and `weights` stays empty.
[[nodiscard]] TrainResult predict(const PredictSettings& settings, const TrainHooks& hooks = {});

}  // namespace weir
