#include "trainer/run/evaluate.hpp"

#include <algorithm>

#include "allocator/base/error.hpp"
#include "trainer/run/feed.hpp"

namespace weir {
namespace {

void classify_batch(RunResources& resources, Feed& feed, Mlp& model, const Tensor& correct,
                    const std::stop_token& stop) {
  const Batch batch = resources.scheduler().begin_batch("test", {.stop = stop});
  const Tensor images = feed.inputs();
  const Tensor labels = feed.targets();
  Operations& operations = resources.operations();
  operations.accumulate(correct, operations.correct_rows(model.infer(images), labels));
}

}  // namespace

BatchShape batch_shape(const LabelledImages& images, std::uint64_t rows) {
  return {.rows = std::min<std::size_t>(rows, images.count),
          .inputs = images.pixels_per_image(),
          .targets = 1,
          .rows_in_all = images.count};
}

void evaluate(TrainResult& result, RunResources& resources, Reader& reader, Mlp& model,
              const LabelledImages& images, const TrainHooks& hooks) {
  result.testing = true;
  const Tensor correct = resources.operations().filled({1}, 0, "correct in all");
  CopiedFeed feed(resources.scheduler(), reader);
  while (result.test_images < images.count && !hooks.stop.stop_requested()) {
    feed.next();
    try {
      classify_batch(resources, feed, model, correct, hooks.stop);
    } catch (const Cancelled&) {
      break;  // held back at its begin, or for memory: nothing of it counts
    }
    ++result.test_batches;
    result.test_images += feed.rows();
    if (hooks.on_done) hooks.on_done(result.test_images, images.count);
  }
  resources.scheduler().wait_all();
  if (result.test_images != images.count) {
    result.outcome = Outcome::kInterrupted;
    return;
  }
  result.test_accuracy = static_cast<double>(resources.scheduler().read(correct).front()) /
                         static_cast<double>(images.count);
}

}  // namespace weir
