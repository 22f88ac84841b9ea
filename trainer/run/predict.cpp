#include "trainer/run/predict.hpp"

#include <utility>

#include "allocator/base/error.hpp"
#include "kernels/blas/blas.hpp"
#include "trainer/data/batches.hpp"
#include "trainer/model/mlp.hpp"
#include "trainer/run/evaluate.hpp"
#include "trainer/run/run_resources.hpp"

namespace weir {
namespace {

void predict_with_resources(TrainResult& result, const PredictSettings& settings,
                            const TrainHooks& hooks) {
  const LabelledImages& images = *settings.images;
  const BatchShape shape = batch_shape(images, settings.train.batch_size.value);
  RunResources resources(settings.train);
  Reader& reader = resources.add_reader(shape, ordered_source(images, shape.rows));
  Watch watch(resources);
  result.testing = true;
  until_out_of_memory(result, settings.train, [&] {
    Mlp model(resources.operations(), settings.weights.widths, settings.weights.parameters);
    resources.scheduler().wait_all();
    watch.start();
    evaluate(result, resources, reader, model, images, hooks);
  });
  resources.scheduler().wait_all();
  watch.stop(result);
  resources.collect(result);
}

}  // namespace

void PredictSettings::load(Setting<std::string> data, Setting<std::string> file) {
  data_directory = std::move(data);
  weights_file = std::move(file);
  images = std::make_shared<const LabelledImages>(
      read_test_images(data_directory.source, data_directory.value));
  weights = read_weights(weights_file.source, weights_file.value);
  if (weights.widths.front() != images->pixels_per_image()) {
    throw UsageError(weights_file.source + ": " + weights_file.value + ": expected weights for " +
                     std::to_string(images->pixels_per_image()) + " pixels (" +
                     images->images_file + "), found " + format_widths(weights.widths));
  }
  require_labels_below(
      data_directory.source, *images, weights.widths.back(),
      "the classes of " + weights_file.value + ", " + format_widths(weights.widths));
}

std::vector<NamedPath> PredictSettings::files() const {
  return {{weights_file.source, weights_file.value},
          {data_directory.source, images->images_file},
          {data_directory.source, images->labels_file}};
}

std::vector<SettingLine> PredictSettings::lines() const {
  std::vector<SettingLine> lines = train.memory_lines();
  lines.push_back(setting_line("data", data_directory.value, data_directory));
  lines.push_back(setting_line("weights", weights_file.value, weights_file));
  lines.push_back({"model", format_widths(weights.widths), "weights"});
  lines.push_back(
      setting_line("batch-size", std::to_string(train.batch_size.value), train.batch_size));
  return lines;
}

TrainResult predict(const PredictSettings& settings, const TrainHooks& hooks) {
  settings.train.validate();
  TrainResult result;
  result.testing = true;
  // not even one batch's inputs fit
  until_out_of_memory(result, settings.train,
                      [&] { predict_with_resources(result, settings, hooks); });
  return result;
}

}  // namespace weir
