#include "trainer/mlp.hpp"

#include <cmath>
#include <string>

#include "allocator/error.hpp"
#include "kernels/dense.hpp"
#include "kernels/elementwise.hpp"
#include "kernels/loss.hpp"
#include "kernels/random.hpp"
#include "kernels/sgd.hpp"

namespace weir {

Tensor filled(Scheduler& scheduler, const Shape& shape, float value, std::string_view label) {
  Tensor tensor = scheduler.empty(shape, label);
  scheduler.submit("fill", {.writes = {tensor}},
                   [value](Stream&, Inputs, Outputs out) { fill(out[0], value); });
  return tensor;
}

Mlp::Mlp(Scheduler& scheduler, std::span<const std::size_t> widths, std::uint64_t seed)
    : scheduler_(scheduler) {
  if (widths.size() < 2) throw UsageError("a model needs an input and an output width");
  for (std::size_t l = 0; l + 1 < widths.size(); ++l) {
    const Shape shape{widths[l], widths[l + 1]};
    const std::string layer = std::to_string(l);
    const Tensor w = scheduler.empty(shape, "weights " + layer);
    const float deviation = std::sqrt(2.0F / static_cast<float>(widths[l]));
    scheduler.submit("draw weights", {.writes = {w}},
                     [seed, l, deviation](Stream&, Inputs, Outputs out) {
                       fill_normal(seed, l, out[0]);
                       scale(deviation, out[0]);
                     });
    const Shape row{widths[l + 1]};
    parameters_.push_back(w);
    parameters_.push_back(filled(scheduler, row, 0, "bias " + layer));
    gradients_.push_back(filled(scheduler, shape, 0, "weight gradient " + layer));
    gradients_.push_back(filled(scheduler, row, 0, "bias gradient " + layer));
  }
}

Mlp::Tape Mlp::forward(const Tensor& x) {
  Tape tape{x};
  for (std::size_t l = 0; l < layers(); ++l) {
    const Shape& w = weights(l).shape();
    const DenseShape shape{.m = x.shape()[0], .k = w[0], .n = w[1]};
    const Activation activation = l + 1 < layers() ? Activation::kRelu : Activation::kNone;
    const Tensor y = scheduler_.empty({shape.m, shape.n}, "activations");
    scheduler_.submit("dense", {.reads = {tape.back(), weights(l), bias(l)}, .writes = {y}},
                      [shape, activation](Stream&, Inputs in, Outputs out) {
                        dense_forward(shape, in[0], in[1], in[2], out[0], activation);
                      });
    tape.push_back(y);
  }
  return tape;
}

void Mlp::backward(Tape tape, Tensor gradient) {
  for (std::size_t l = layers(); l-- > 0;) {
    tape.pop_back();  // the layer's output: its mask is applied, nothing needs it any more
    const Tensor input = tape.back();
    const Shape& w = weights(l).shape();
    const DenseShape shape{.m = input.shape()[0], .k = w[0], .n = w[1]};
    scheduler_.submit("weight gradient",
                      {.reads = {input, gradient}, .writes = {gradients_[2 * l]}},
                      [shape](Stream&, Inputs in, Outputs out) {
                        dense_weight_gradient(shape, in[0], in[1], out[0]);
                      });
    scheduler_.submit(
        "bias gradient", {.reads = {gradient}, .writes = {gradients_[2 * l + 1]}},
        [shape](Stream&, Inputs in, Outputs out) { dense_bias_gradient(shape, in[0], out[0]); });
    if (l == 0) return;
    const Tensor below = scheduler_.empty({shape.m, shape.k}, "activation gradients");
    scheduler_.submit("input gradient", {.reads = {gradient, weights(l), input}, .writes = {below}},
                      [shape](Stream&, Inputs in, Outputs out) {
                        dense_input_gradient(shape, in[0], in[1], out[0]);
                        relu_backward(in[2], out[0]);
                      });
    gradient = below;
  }
}

void Mlp::step(float learning_rate, float momentum) {
  if (momentum > 0 && velocities_.empty()) {
    for (const Tensor& w : parameters_) {
      velocities_.push_back(filled(scheduler_, w.shape(), 0, "velocity"));
    }
  }
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const Tensor& w = parameters_[i];
    const Tensor& g = gradients_[i];
    if (momentum > 0) {
      const Tensor& v = velocities_[i];
      scheduler_.submit("step", {.reads = {g, w, v}, .writes = {w, v}},
                        [learning_rate, momentum](Stream&, Inputs in, Outputs out) {
                          sgd_momentum(out[0], in[0], out[1], learning_rate, momentum);
                        });
    } else {
      scheduler_.submit(
          "step", {.reads = {g, w}, .writes = {w}},
          [learning_rate](Stream&, Inputs in, Outputs out) { sgd(out[0], in[0], learning_rate); });
    }
  }
}

std::vector<std::vector<float>> Mlp::read_parameters() {
  std::vector<std::vector<float>> values;
  values.reserve(parameters_.size());
  for (const Tensor& w : parameters_) values.push_back(scheduler_.read(w));
  return values;
}

Tensor l2_loss(Scheduler& scheduler, const Tensor& prediction, const Tensor& targets) {
  Tensor loss = scheduler.empty({1}, "loss");
  scheduler.submit("loss", {.reads = {prediction, targets}, .writes = {loss}},
                   [](Stream&, Inputs in, Outputs out) { l2_loss(in[0], in[1], out[0]); });
  return loss;
}

Tensor l2_loss_gradient(Scheduler& scheduler, const Tensor& prediction, const Tensor& targets) {
  Tensor gradient = scheduler.empty(prediction.shape(), "loss gradient");
  scheduler.submit("loss gradient", {.reads = {prediction, targets}, .writes = {gradient}},
                   [](Stream&, Inputs in, Outputs out) { l2_loss_gradient(in[0], in[1], out[0]); });
  return gradient;
}

void accumulate(Scheduler& scheduler, const Tensor& total, const Tensor& value) {
  scheduler.submit("accumulate", {.reads = {value, total}, .writes = {total}},
                   [](Stream&, Inputs in, Outputs out) { add(in[0], out[0]); });
}

}  // namespace weir
