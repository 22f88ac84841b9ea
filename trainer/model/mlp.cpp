#include "trainer/model/mlp.hpp"

#include <cmath>
#include <string>

#include "allocator/base/error.hpp"

namespace weir {

Mlp::Mlp(Operations& operations, std::span<const std::size_t> widths, std::uint64_t seed)
    : operations_(operations) {
  if (widths.size() < 2) throw UsageError("a model needs an input and an output width");
  for (std::size_t l = 0; l + 1 < widths.size(); ++l) {
    const Shape shape{widths[l], widths[l + 1]};
    const Shape row{widths[l + 1]};
    const std::string layer = std::to_string(l);
    const float deviation = std::sqrt(2.0F / static_cast<float>(widths[l]));
    parameters_.push_back(operations.drawn(
        shape, {.seed = seed, .sequence = l, .deviation = deviation}, "weights " + layer));
    parameters_.push_back(operations.filled(row, 0, "bias " + layer));
    gradients_.push_back(operations.filled(shape, 0, "weight gradient " + layer));
    gradients_.push_back(operations.filled(row, 0, "bias gradient " + layer));
  }
}

Mlp::Mlp(Operations& operations, std::span<const std::size_t> widths,
         std::span<const std::vector<float>> parameters)
    : operations_(operations) {
  if (widths.size() < 2 || parameters.size() != 2 * (widths.size() - 1)) {
    throw UsageError("a model needs the weights and the bias of each of its layers");
  }
  Scheduler& scheduler = operations.scheduler();
  for (std::size_t l = 0; l + 1 < widths.size(); ++l) {
    const std::string layer = std::to_string(l);
    parameters_.push_back(
        scheduler.copy_in(parameters[2 * l], {widths[l], widths[l + 1]}, "weights " + layer));
    parameters_.push_back(
        scheduler.copy_in(parameters[2 * l + 1], {widths[l + 1]}, "bias " + layer));
  }
}

Tensor Mlp::dense(std::size_t l, const Tensor& x) {
  return products_.dense({x}, {weights(l)}, bias(l),
                         has_relu(l) ? Activation::kRelu : Activation::kNone);
}

Mlp::Tape Mlp::forward(const Tensor& x) {
  Tape tape{x};
  for (std::size_t l = 0; l < layers(); ++l) tape.push_back(dense(l, tape.back()));
  return tape;
}

Tensor Mlp::infer(const Tensor& x) {
  Tensor h = x;
  for (std::size_t l = 0; l < layers(); ++l) h = dense(l, h);
  return h;
}

void Mlp::backward(Tape tape, Tensor gradient) {
  if (gradients_.empty()) throw UsageError("a model of given parameters cannot be trained");
  for (std::size_t l = layers(); l-- > 0;) {
    if (has_relu(l)) {
      operations_.relu_and_bias_gradient(tape.back(), gradient, gradients_[2 * l + 1]);
    } else {
      operations_.bias_gradient(gradient, gradients_[2 * l + 1]);
    }
    tape.pop_back();  // the layer's output: its mask is applied, so nothing needs it
    products_.weight_gradient({tape.back()}, {gradient}, gradients_[2 * l]);
    if (l != 0) gradient = products_.input_gradient({gradient}, {weights(l)});
  }
}

void Mlp::make_velocities() {
  if (!velocities_.empty()) return;
  for (const Tensor& w : parameters_) {
    velocities_.push_back(operations_.filled(w.shape(), 0, "velocity"));
  }
}

void Mlp::step(float learning_rate, float momentum) {
  if (momentum > 0) make_velocities();
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (momentum > 0) {
      operations_.step_with_momentum(parameters_[i], gradients_[i], velocities_[i], learning_rate,
                                     momentum);
    } else {
      operations_.step(parameters_[i], gradients_[i], learning_rate);
    }
  }
}

std::vector<std::vector<float>> Mlp::read_parameters() {
  std::vector<std::vector<float>> values;
  values.reserve(parameters_.size());
  for (const Tensor& w : parameters_) values.push_back(operations_.scheduler().read(w));
  return values;
}

}  // namespace weir
