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
#include "trainer/run/bench.hpp"
#include "trainer/run/evaluate.hpp"
#include "trainer/run/feed.hpp"

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

std::unique_ptr<Feed> make_feed(Bench& bench, const TrainSettings& s) {
  if (s.inputs.value == InputKind::kDrawn) {
    return std::make_unique<DrawnFeed>(bench.operations(), training_shape(s), s.seed.value);
  }
  const std::uint64_t made_beforehand = s.inputs.value == InputKind::kRing ? s.ring.value : 0;
  return std::make_unique<CopiedFeed>(
      bench.scheduler(), bench.add_reader(training_shape(s), training_source(s), made_beforehand));
}

void train_batch(Bench& bench, const TrainSettings& settings, Feed& feed, Mlp& model,
                 const Tensor& total, const std::stop_token& stop) {
  const Batch batch = bench.scheduler().begin_batch("train", {.stop = stop});
  Mlp::Tape tape = model.forward(feed.inputs());
  const Tensor targets = feed.targets();
  Loss loss = loss_of(settings, bench.operations(), tape.back(), targets);
  model.backward(std::move(tape), std::move(loss.gradient));
  model.step(static_cast<float>(settings.learning_rate.value),
             static_cast<float>(settings.momentum.value));
  // Last, where no wait for memory is left that a stop could end: only whole batches count.
  bench.operations().accumulate(total, loss.value);
}

/// The loop. After an exception the bench is usable, and `result` holds what was done.
void run_batches(TrainResult& result, Bench& bench, Feed& feed, Mlp& model,
                 const TrainSettings& settings, const TrainHooks& hooks, Watch& watch) {
  const Tensor total = bench.operations().filled({1}, 0, "loss total");
  bench.scheduler().wait_all();
  HostTimes times(bench, result);
  watch.start();
  while (result.batches < settings.batches.value && !hooks.stop.stop_requested()) {
    feed.next();
    times.start();
    try {
      train_batch(bench, settings, feed, model, total, hooks.stop);
    } catch (const Cancelled&) {
      break;  // held back at its begin, or for memory: nothing of it counts
    }
    times.stop();
    ++result.batches;
    result.samples.push_back({bench.held(), bench.staging()});
    if (hooks.progress) hooks.progress(result.batches, settings.batches.value);
  }
  bench.scheduler().wait_all();
  watch.stop(result);
  if (result.batches != 0) {
    result.mean_loss = static_cast<double>(bench.scheduler().read(total).front()) /
                       static_cast<double>(result.batches);
  }
  if (result.batches == settings.batches.value) {
    result.weights = model.read_parameters();
  } else {
    result.outcome = Outcome::kInterrupted;
  }
}

void test_model(TrainResult& result, Bench& bench, Mlp& model, const TrainSettings& settings,
                const TrainHooks& hooks) {
  const LabelledImages& images = settings.data->test;
  const BatchShape shape = batch_shape(images, settings.batch_size.value);
  result.testing = true;
  Reader& reader = bench.add_reader(shape, ordered_source(images, shape.rows));
  evaluate(result, bench, reader, model, images, {.stop = hooks.stop, .progress = {}});
}

void run_on_bench(TrainResult& result, const TrainSettings& settings, const TrainHooks& hooks) {
  Bench bench(settings);
  const std::unique_ptr<Feed> feed = make_feed(bench, settings);
  Watch watch(bench);
  try {
    Mlp model(bench.operations(), settings.widths, settings.seed.value);
    run_batches(result, bench, *feed, model, settings, hooks, watch);
    if (settings.data != nullptr && result.outcome == Outcome::kFinished) {
      test_model(result, bench, model, settings, hooks);
    }
  } catch (const OutOfMemory& error) {
    result.outcome = Outcome::kOutOfMemory;
    result.report = error.what();
  }
  bench.scheduler().wait_all();
  watch.stop(result);
  bench.collect(result);
}

}  // namespace

TrainResult train(const TrainSettings& settings, const TrainHooks& hooks) {
  settings.validate();
  TrainResult result;
  try {
    run_on_bench(result, settings, hooks);
  } catch (const OutOfMemory& error) {  // not even one batch's inputs fit
    result.outcome = Outcome::kOutOfMemory;
    result.report = error.what();
  }
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
