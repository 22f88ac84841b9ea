#pragma once

// Classifies the test images with a model, throttled by admission like training. The count of
// correct rows stays on the device and is read once, at the end.

#include "trainer/data/idx.hpp"
#include "trainer/model/mlp.hpp"
#include "trainer/run/bench.hpp"
#include "trainer/run/train.hpp"

namespace weir {

/// Returns the shape of batches of at most `rows` of these images.
[[nodiscard]] BatchShape batch_shape(const LabelledImages& images, std::uint64_t rows);

/// Sets the `test…` fields of `result`, and its outcome if stopped. After an exception they hold
/// what was done. `reader` must hand out the images in file order.
void evaluate(TrainResult& result, Bench& bench, Reader& reader, Mlp& model,
              const LabelledImages& images, const TrainHooks& hooks);

}  // namespace weir
