#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <deque>
#include <span>
#include <vector>

#include "allocator/base/error_cuda.hpp"
#include "kernels/blas/blas.hpp"
#include "kernels/dense.hpp"
#include "kernels/elementwise/elementwise.hpp"
#include "kernels/loss.hpp"
#include "kernels/optimizer/update.hpp"
#include "kernels/parts/workspace_cuda.hpp"
#include "scheduler/device/device_kind.hpp"
#include "scheduler/device/stream_cuda.hpp"
#include "tools/program/median.hpp"
#include "trainer/data/reader.hpp"
#include "trainer/plain/plain.hpp"
#include "trainer/plain/plain_memory_cuda.hpp"
#include "trainer/run/settings.hpp"

namespace weir {
namespace {

/// The model of mlp.hpp in memory allocated once, trained by kernels called in order on one stream.
class PlainNetwork {
 public:
  /// Allocates its memory and enqueues its initialization. `memory` must outlive it. Throws
  /// CudaError.
  PlainNetwork(PlainMemory& memory, cudaStream_t stream, const TrainSettings& settings);

  /// Enqueues a batch: forward, loss, backward, step. The bits depend on this order, which is that
  /// of Mlp and Operations.
  void train(std::span<const float> inputs, std::span<const float> targets);

  /// Returns them in the order of Mlp::read_parameters. Waits for the stream.
  [[nodiscard]] std::vector<std::vector<float>> read_parameters();
  /// Returns the sum of the batches' losses. Waits for the stream.
  [[nodiscard]] float read_loss_total();

 private:
  struct Parameter {
    std::span<float> value;
    std::span<float> gradient;
    std::span<float> velocity;  ///< empty without momentum
  };
  struct Layer {
    DenseShape shape;
    Activation activation;
    Parameter weights;
    Parameter bias;
    std::span<float> output;
    std::span<float> output_gradient;
  };

  [[nodiscard]] Parameter parameter(PlainMemory& memory, std::size_t count) const;
  void backward(std::span<const float> inputs);
  void step(const Parameter& parameter);
  [[nodiscard]] std::vector<float> read(std::span<const float> values) const;

  const cudaStream_t stream_;
  const float learning_rate_;
  const float momentum_;
  cuda::CublasHandle blas_;
  const std::span<float> workspace_;
  const std::span<float> loss_;
  const std::span<float> loss_total_;
  std::vector<Layer> layers_;
};

PlainNetwork::PlainNetwork(PlainMemory& memory, cudaStream_t stream, const TrainSettings& settings)
    : stream_(stream),
      learning_rate_(static_cast<float>(settings.learning_rate.value)),
      momentum_(static_cast<float>(settings.momentum.value)),
      workspace_(memory.on_device(cuda::kWorkspaceElements)),
      loss_(memory.on_device(1)),
      loss_total_(memory.on_device(1)) {
  const std::size_t rows = settings.batch_size.value;
  for (std::size_t l = 0; l + 1 < settings.widths.size(); ++l) {
    const std::size_t inputs = settings.widths[l];
    const std::size_t outputs = settings.widths[l + 1];
    const bool is_last = l + 2 == settings.widths.size();
    layers_.push_back({.shape = {.m = rows, .k = inputs, .n = outputs},
                       .activation = is_last ? Activation::kNone : Activation::kRelu,
                       .weights = parameter(memory, inputs * outputs),
                       .bias = parameter(memory, outputs),
                       .output = memory.on_device(rows * outputs),
                       .output_gradient = memory.on_device(rows * outputs)});
    const std::span<float> weights = layers_.back().weights.value;
    cuda::fill_normal(stream_, settings.seed.value, l, weights);
    cuda::scale(stream_, std::sqrt(2.0F / static_cast<float>(inputs)), weights);
    cuda::fill(stream_, layers_.back().bias.value, 0);
  }
  cuda::fill(stream_, loss_total_, 0);
}

PlainNetwork::Parameter PlainNetwork::parameter(PlainMemory& memory, std::size_t count) const {
  Parameter made{
      .value = memory.on_device(count), .gradient = memory.on_device(count), .velocity = {}};
  if (momentum_ > 0) {
    made.velocity = memory.on_device(count);
    cuda::fill(stream_, made.velocity, 0);
  }
  return made;
}

void PlainNetwork::train(std::span<const float> inputs, std::span<const float> targets) {
  std::span<const float> x = inputs;
  for (const Layer& layer : layers_) {
    cuda::dense_forward(blas_, stream_, Precision::kFloat32, layer.shape, x, layer.weights.value,
                        layer.bias.value, layer.output, layer.activation, workspace_);
    x = layer.output;
  }
  cuda::l2_loss(stream_, x, targets, loss_, workspace_);
  cuda::add(stream_, loss_, loss_total_);
  cuda::l2_loss_gradient(stream_, x, targets, layers_.back().output_gradient);
  backward(inputs);
  for (const Layer& layer : layers_) {
    step(layer.weights);
    step(layer.bias);
  }
}

void PlainNetwork::backward(std::span<const float> inputs) {
  for (std::size_t l = layers_.size(); l-- > 0;) {
    const Layer& layer = layers_[l];
    const std::span<float> dy = layer.output_gradient;
    if (layer.activation == Activation::kRelu) {
      cuda::relu_and_bias_gradient(stream_, layer.shape, layer.output, dy, layer.bias.gradient,
                                   workspace_);
    } else {
      cuda::dense_bias_gradient(stream_, layer.shape, dy, layer.bias.gradient, workspace_);
    }
    const std::span<const float> x = l == 0 ? inputs : layers_[l - 1].output;
    cuda::dense_weight_gradient(blas_, stream_, Precision::kFloat32, layer.shape, x, dy,
                                layer.weights.gradient, workspace_);
    if (l == 0) continue;
    cuda::dense_input_gradient(blas_, stream_, Precision::kFloat32, layer.shape, dy,
                               layer.weights.value, layers_[l - 1].output_gradient, workspace_);
  }
}

void PlainNetwork::step(const Parameter& parameter) {
  if (momentum_ > 0) {
    cuda::sgd_momentum(stream_, parameter.value, parameter.gradient, parameter.velocity,
                       learning_rate_, momentum_);
  } else {
    cuda::sgd(stream_, parameter.value, parameter.gradient, learning_rate_);
  }
}

std::vector<float> PlainNetwork::read(std::span<const float> values) const {
  std::vector<float> read(values.size());
  check_cuda(cudaMemcpyAsync(read.data(), values.data(), values.size_bytes(),
                             cudaMemcpyDeviceToHost, stream_),
             "cudaMemcpyAsync");
  check_cuda(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
  return read;
}

std::vector<std::vector<float>> PlainNetwork::read_parameters() {
  std::vector<std::vector<float>> values;
  for (const Layer& layer : layers_) {
    values.push_back(read(layer.weights.value));
    values.push_back(read(layer.bias.value));
  }
  return values;
}

float PlainNetwork::read_loss_total() { return read(loss_total_).front(); }

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Inputs and targets of a batch.
struct PlainBatch {
  std::span<float> inputs;
  std::span<float> targets;
};

/// Batches on the device, in places used in turn: filled on one stream, used on another.
class PlainFeed {
 public:
  PlainFeed(PlainMemory& memory, cudaStream_t copies, const TrainSettings& s)
      : copies_(copies), seed_(s.seed.value) {
    const std::size_t inputs = s.batch_size.value * s.widths.front();
    const std::size_t targets = s.batch_size.value * s.widths.back();
    const std::uint64_t places = std::max<std::uint64_t>(s.ring.value, 2);
    for (std::uint64_t i = 0; i < places; ++i) {
      places_.emplace_back().on_device = {memory.on_device(inputs), memory.on_device(targets)};
    }
    if (s.inputs.value != InputKind::kRing) return;
    const BatchSource source = generated_source(seed_);
    for (std::uint64_t i = 0; i < s.ring.value; ++i) {
      const PlainBatch& made =
          ring_.emplace_back(PlainBatch{memory.on_host(inputs), memory.on_host(targets)});
      source(i, made.inputs, made.targets);
    }
  }

  /// Waits until batch number `index` has a place, which bounds how far the host runs ahead.
  void await_place(std::uint64_t index) { place(index).used.wait(); }
  /// Enqueues the work that fills its place, and makes `user` wait for that.
  const PlainBatch& fill(std::uint64_t index, cudaStream_t user) {
    Place& to = place(index);
    if (ring_.empty()) {
      cuda::fill_normal(copies_, seed_, generated_sequence(index), to.on_device.inputs);
      cuda::fill(copies_, to.on_device.targets, kGeneratedTarget);
    } else {
      const PlainBatch& from = ring_[index % ring_.size()];
      copy(to.on_device.inputs, from.inputs);
      copy(to.on_device.targets, from.targets);
    }
    to.filled.record(copies_);
    to.filled.hold_back(user);
    return to.on_device;
  }
  /// Call once all work of `user` on the batch is enqueued.
  void give_back(std::uint64_t index, cudaStream_t user) { place(index).used.record(user); }

 private:
  struct Place {
    PlainBatch on_device;
    PlainEvent filled;
    PlainEvent used;
  };
  [[nodiscard]] Place& place(std::uint64_t index) { return places_[index % places_.size()]; }
  void copy(std::span<float> to, std::span<const float> from) {
    check_cuda(
        cudaMemcpyAsync(to.data(), from.data(), from.size_bytes(), cudaMemcpyHostToDevice, copies_),
        "cudaMemcpyAsync");
  }

  const cudaStream_t copies_;
  const std::uint64_t seed_;
  std::deque<Place> places_;
  std::vector<PlainBatch> ring_;  ///< in host memory; empty if batches are drawn
};

/// Everything of a run. Destroyed after its streams are done.
class PlainRun {
 public:
  PlainRun(int ordinal, const TrainSettings& settings)
      : compute_(ordinal),
        copies_(ordinal),
        feed_(memory_, copies_.get(), settings),
        network_(memory_, compute_.get(), settings) {
    synchronize();
  }
  ~PlainRun() {
    for (const auto* stream : {&copies_, &compute_}) {
      (void)take_cuda_error(cudaStreamSynchronize(stream->get()));
    }
  }
  PlainRun(const PlainRun&) = delete;
  PlainRun& operator=(const PlainRun&) = delete;

  void train(TrainResult& result, std::uint64_t batches, const TrainHooks& hooks) {
    std::vector<double> host;
    host.reserve(batches);
    const Clock::time_point start = Clock::now();
    while (result.batches < batches && !hooks.stop.stop_requested()) {
      feed_.await_place(result.batches);
      const Clock::time_point begin = Clock::now();
      const PlainBatch& batch = feed_.fill(result.batches, compute_.get());
      network_.train(batch.inputs, batch.targets);
      feed_.give_back(result.batches, compute_.get());
      host.push_back(seconds_since(begin));
      ++result.batches;
      if (hooks.on_done) hooks.on_done(result.batches, batches);
    }
    synchronize();
    result.seconds = seconds_since(start);
    result.host_seconds = median(std::move(host));
  }

  /// Stores the result of the run and the memory that it took.
  void collect(TrainResult& result, std::uint64_t batches) {
    result.pool.reserved.peak = memory_.taken();
    result.staging = memory_.pinned();
    if (result.batches != 0) {
      result.mean_loss =
          static_cast<double>(network_.read_loss_total()) / static_cast<double>(result.batches);
    }
    if (result.batches == batches) {
      result.weights = network_.read_parameters();
    } else {
      result.outcome = Outcome::kInterrupted;
    }
  }

 private:
  void synchronize() {
    for (const auto* stream : {&copies_, &compute_}) {
      check_cuda(cudaStreamSynchronize(stream->get()), "cudaStreamSynchronize");
    }
  }

  // Reverse destruction order: users of the memory and the streams are destroyed first.
  OwnedCudaStream compute_;
  OwnedCudaStream copies_;
  PlainMemory memory_;
  PlainFeed feed_;
  PlainNetwork network_;
};

}  // namespace

TrainResult train_plain(const TrainSettings& settings, const TrainHooks& hooks) {
  settings.validate();
  if (const std::string why = why_no_plain_run(settings); !why.empty()) {
    throw UsageError("this job has no run without Weir: " + why);
  }
  TrainResult result;
  try {
    const int ordinal = parse_device_id(settings.device.value).ordinal;
    const CudaScope scope(ordinal);
    PlainRun run(ordinal, settings);
    run.train(result, settings.batches.value, hooks);
    run.collect(result, settings.batches.value);
  } catch (const CudaError& error) {
    if (error.code() != cudaErrorMemoryAllocation) throw;
    result.outcome = Outcome::kOutOfMemory;
    result.report = error.what();
  }
  return result;
}

}  // namespace weir
