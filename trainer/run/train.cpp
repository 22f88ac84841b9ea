#include "trainer/run/train.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "allocator/base/error.hpp"
#include "kernels/blas/blas.hpp"
#include "scheduler/scheduler.hpp"
#include "tools/program/table.hpp"
#include "trainer/data/batches.hpp"
#include "trainer/data/reader.hpp"
#include "trainer/model/mlp.hpp"
#include "trainer/run/evaluate.hpp"
#include "trainer/run/feed.hpp"
#include "trainer/run/run_resources.hpp"

namespace weir {
namespace {

BatchShape training_shape(const TrainSettings& s) {
  if (s.data != nullptr) return batch_shape(s.data->train, s.batch_size.value);
  return {.rows = s.batch_size.value, .inputs = s.widths.front(), .targets = s.widths.back()};
}

BatchSource training_source(const TrainSettings& s) {
  if (s.data == nullptr) return generated_source(s.seed.value);
  return shuffled_source(s.data, training_shape(s).rows, s.seed.value);
}

struct Loss {
  Tensor value;
  Tensor gradient;  ///< at the prediction
};

Loss loss_of(const TrainSettings& settings, Operations& operations, const Tensor& prediction,
             const Tensor& targets) {
  if (settings.data == nullptr) {
    return {.value = operations.l2_loss(prediction, targets),
            .gradient = operations.l2_loss_gradient(prediction, targets)};
  }
  return {.value = operations.softmax_loss(prediction, targets),
          .gradient = operations.softmax_loss_gradient(prediction, targets)};
}

std::unique_ptr<Feed> make_feed(RunResources& resources, const TrainSettings& s) {
  const FeedPlaces places =
      s.memory.value == StaticMemory::kNone ? FeedPlaces::kNew : FeedPlaces::kFixed;
  if (s.inputs.value == InputKind::kDrawn) {
    return std::make_unique<DrawnFeed>(resources.operations(), training_shape(s), s.seed.value,
                                       places);
  }
  const std::uint64_t made_beforehand = s.inputs.value == InputKind::kRing ? s.ring.value : 0;
  return std::make_unique<CopiedFeed>(
      resources.scheduler(),
      resources.add_reader(training_shape(s), training_source(s), made_beforehand), places);
}

void train_batch(RunResources& resources, const TrainSettings& settings, Feed& feed, Mlp& model,
                 const Tensor& total, const std::stop_token& stop) {
  const Batch batch = resources.scheduler().begin_batch("train", {.stop = stop});
  resources.submit_batch("train", [&] {
    Mlp::Tape tape = model.forward(feed.inputs());
    const Tensor targets = feed.targets();
    Loss loss = loss_of(settings, resources.operations(), tape.back(), targets);
    model.backward(std::move(tape), std::move(loss.gradient));
    model.step(static_cast<float>(settings.learning_rate.value),
               static_cast<float>(settings.momentum.value));
    // Last, where no wait for memory is left that a stop could end: only whole batches count.
    resources.operations().accumulate(total, loss.value);
  });
}

/// The loop. What it throws leaves the resources usable, and `result` with what was done.
void run_batches(TrainResult& result, RunResources& resources, Feed& feed, Mlp& model,
                 const TrainSettings& settings, const TrainHooks& hooks, Watch& watch) {
  const Tensor total = resources.operations().filled({1}, 0, "loss total");
  // Otherwise the first batch would have another shape than the second.
  if (settings.memory.value != StaticMemory::kNone && settings.momentum.value > 0) {
    model.make_velocities();
  }
  resources.scheduler().wait_all();
  HostTimes times(resources, result);
  watch.start();
  while (result.batches < settings.batches.value && !hooks.stop.stop_requested()) {
    feed.next();
    times.start();
    try {
      train_batch(resources, settings, feed, model, total, hooks.stop);
    } catch (const Cancelled&) {
      break;  // held back at its begin, or for memory: nothing of it counts
    }
    times.stop();
    ++result.batches;
    result.samples.push_back({resources.held(), resources.staging()});
    if (hooks.on_done) hooks.on_done(result.batches, settings.batches.value);
  }
  resources.scheduler().wait_all();
  watch.stop(result);
  if (result.batches != 0) {
    result.mean_loss = static_cast<double>(resources.scheduler().read(total).front()) /
                       static_cast<double>(result.batches);
  }
  if (result.batches == settings.batches.value) {
    result.weights = model.read_parameters();
  } else {
    result.outcome = Outcome::kInterrupted;
  }
}

void test_model(TrainResult& result, RunResources& resources, Mlp& model,
                const TrainSettings& settings, const TrainHooks& hooks) {
  const LabelledImages& images = settings.data->test;
  const BatchShape shape = batch_shape(images, settings.batch_size.value);
  result.testing = true;
  Reader& reader = resources.add_reader(shape, ordered_source(images, shape.rows));
  evaluate(result, resources, reader, model, images, {.stop = hooks.stop, .on_done = {}});
}

void run_with_resources(TrainResult& result, const TrainSettings& settings,
                        const TrainHooks& hooks) {
  RunResources resources(settings);
  const std::unique_ptr<Feed> feed = make_feed(resources, settings);
  Watch watch(resources);
  until_out_of_memory(result, settings, [&] {
    Mlp model(resources.operations(), settings.widths, settings.seed.value);
    run_batches(result, resources, *feed, model, settings, hooks, watch);
    if (settings.data != nullptr && result.outcome == Outcome::kFinished) {
      test_model(result, resources, model, settings, hooks);
    }
  });
  resources.scheduler().wait_all();
  watch.stop(result);
  resources.collect(result);
}

}  // namespace

TrainResult train(const TrainSettings& settings, const TrainHooks& hooks) {
  settings.validate();
  TrainResult result;
  // not even one batch's inputs fit
  until_out_of_memory(result, settings, [&] { run_with_resources(result, settings, hooks); });
  return result;
}

bool diverged(const TrainResult& result) {
  if (result.mean_loss && !std::isfinite(*result.mean_loss)) return true;
  return std::ranges::any_of(result.weights, [](const std::vector<float>& weights) {
    return !std::ranges::all_of(weights, [](float weight) { return std::isfinite(weight); });
  });
}

std::string describe_outcome(const TrainResult& result) {
  const std::uint64_t done = result.testing ? result.test_batches : result.batches;
  const std::string kind = result.testing ? "test " : "";
  switch (result.outcome) {
    case Outcome::kFinished:
      return diverged(result) ? "diverged" : "finished";
    case Outcome::kOutOfMemory:
      return "out of memory in " + kind + "batch " + std::to_string(done + 1);
    case Outcome::kInterrupted:
      return "interrupted after " + format_count(done, kind + "batch", "es");
  }
  return "unknown";
}

}  // namespace weir
