#include "trainer/mlp.hpp"

#include <cmath>
#include <string>

#include "allocator/error.hpp"
#include "kernels/classification.hpp"
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

Mlp::Mlp(Scheduler& scheduler, std::span<const std::size_t> widths,
         std::span<const std::vector<float>> parameters)
    : scheduler_(scheduler) {
  if (widths.size() < 2 || parameters.size() != 2 * (widths.size() - 1)) {
    throw UsageError("a model needs the weights and the bias of each of its layers");
  }
  for (std::size_t l = 0; l + 1 < widths.size(); ++l) {
    const std::string layer = std::to_string(l);
    parameters_.push_back(
        scheduler.copy_in(parameters[2 * l], {widths[l], widths[l + 1]}, "weights " + layer));
    parameters_.push_back(
        scheduler.copy_in(parameters[2 * l + 1], {widths[l + 1]}, "bias " + layer));
  }
}

Tensor Mlp::dense(std::size_t l, const Tensor& x) {
  const Shape& w = weights(l).shape();
  const DenseShape shape{.m = x.shape()[0], .k = w[0], .n = w[1]};
  const Activation activation = l + 1 < layers() ? Activation::kRelu : Activation::kNone;
  Tensor y = scheduler_.empty({shape.m, shape.n}, "activations");
  scheduler_.submit("dense", {.reads = {x, weights(l), bias(l)}, .writes = {y}},
                    [shape, activation](Stream&, Inputs in, Outputs out) {
                      dense_forward(shape, in[0], in[1], in[2], out[0], activation);
                    });
  return y;
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

namespace {

LogitShape shape_of(const Tensor& logits) {
  return {.rows = logits.shape()[0], .classes = logits.shape()[1]};
}

}  // namespace

Tensor softmax_loss(Scheduler& scheduler, const Tensor& logits, const Tensor& labels) {
  Tensor loss = scheduler.empty({1}, "loss");
  scheduler.submit("loss", {.reads = {logits, labels}, .writes = {loss}},
                   [shape = shape_of(logits)](Stream&, Inputs in, Outputs out) {
                     softmax_cross_entropy(shape, in[0], in[1], out[0]);
                   });
  return loss;
}

Tensor softmax_loss_gradient(Scheduler& scheduler, const Tensor& logits, const Tensor& labels) {
  Tensor gradient = scheduler.empty(logits.shape(), "loss gradient");
  scheduler.submit("loss gradient", {.reads = {logits, labels}, .writes = {gradient}},
                   [shape = shape_of(logits)](Stream&, Inputs in, Outputs out) {
                     softmax_cross_entropy_gradient(shape, in[0], in[1], out[0]);
                   });
  return gradient;
}

Tensor correct_rows(Scheduler& scheduler, const Tensor& logits, const Tensor& labels) {
  Tensor correct = scheduler.empty({1}, "correct");
  scheduler.submit("count correct", {.reads = {logits, labels}, .writes = {correct}},
                   [shape = shape_of(logits)](Stream&, Inputs in, Outputs out) {
                     count_correct(shape, in[0], in[1], out[0]);
                   });
  return correct;
}

void accumulate(Scheduler& scheduler, const Tensor& total, const Tensor& value) {
  scheduler.submit("accumulate", {.reads = {value, total}, .writes = {total}},
                   [](Stream&, Inputs in, Outputs out) { add(in[0], out[0]); });
}

}  // namespace weir
