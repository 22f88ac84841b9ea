#include "trainer/plain/plain_network_cuda.hpp"

#include <cmath>

#include "kernels/dense.hpp"
#include "kernels/elementwise/elementwise.hpp"
#include "kernels/elementwise/random.hpp"
#include "kernels/loss.hpp"
#include "kernels/optimizer/update.hpp"
#include "kernels/parts/workspace_cuda.hpp"

namespace weir {

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

}  // namespace weir
