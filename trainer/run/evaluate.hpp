#pragma once

// Classifies the test images with a model, throttled by admission like training. The count of
// correct rows stays on the device and is read once, at the end.

#include "trainer/data/idx.hpp"
#include "trainer/model/mlp.hpp"
#include "trainer/run/run_resources.hpp"
#include "trainer/run/train.hpp"

namespace weir {

/// Returns the shape of batches of at most `rows` of these images.
[[nodiscard]] BatchShape batch_shape(const LabelledImages& images, std::uint64_t rows);

/// Writes the `test…` fields of `result`, and its outcome when stopped. What it throws leaves them
/// with what was done. `reader` hands the images out in the order of the file.
void evaluate(TrainResult& result, RunResources& resources, Reader& reader, Mlp& model,
              const LabelledImages& images, const TrainHooks& hooks);

}  // namespace weir
