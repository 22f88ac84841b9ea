#include "trainer/model/operations.hpp"

namespace weir {
namespace {

LogitShape logit_shape(const Tensor& logits) {
  return {.rows = logits.shape()[0], .classes = logits.shape()[1]};
}

/// Returns the shape of a layer whose output, or the gradient there, is y, without its inputs.
DenseShape dense_shape(const Tensor& y) { return {.m = y.shape()[0], .k = 0, .n = y.shape()[1]}; }

}  // namespace

Operations::Operations(Scheduler& scheduler, Maths& maths) : submitter_(scheduler), maths_(maths) {
  const std::size_t elements = maths.workspace().count / sizeof(float);
  if (elements == 0) return;
  workspace_ = empty({elements}, "workspace");
  // Allocates it now, outside any batch's charge.
  submitter_.submit("workspace", {.writes = {workspace_}}, [](Stream&, Inputs, Outputs) {});
}

Tensor Operations::filled(const Shape& shape, float value, std::string_view label,
                          StreamRole stream) {
  Tensor tensor = empty(shape, label);
  fill(tensor, value, stream);
  return tensor;
}

Tensor Operations::drawn(const Shape& shape, NormalDraw draw, std::string_view label,
                         StreamRole stream) {
  Tensor tensor = empty(shape, label);
  this->draw(tensor, draw, stream);
  return tensor;
}

void Operations::fill(const Tensor& tensor, float value, StreamRole stream) {
  submit("fill", {.writes = {tensor}, .stream = stream},
         [value](Maths& m, Stream& s, Inputs, Outputs out) { m.fill(s, out[0], value); }, {value});
}

void Operations::draw(const Tensor& tensor, NormalDraw draw, StreamRole stream) {
  submit("draw", {.writes = {tensor}, .stream = stream},
         [draw](Maths& m, Stream& s, Inputs, Outputs out) { m.fill_normal(s, draw, out[0]); },
         {static_cast<double>(draw.seed), static_cast<double>(draw.sequence), draw.deviation,
          static_cast<double>(draw.first)});
}

void Operations::accumulate(const Tensor& total, const Tensor& value) {
  submit("accumulate", {.reads = {value, total}, .writes = {total}},
         [](Maths& m, Stream& s, Inputs in, Outputs out) { m.add(s, in[0], out[0]); });
}

void Operations::bias_activation(const Tensor& b, const Tensor& y, Activation activation) {
  submit("bias and activation", {.reads = {b, y}, .writes = {y}},
         [shape = dense_shape(y), activation](Maths& m, Stream& s, Inputs in, Outputs out) {
           m.bias_activation(s, shape, in[0], out[0], activation);
         });
}

void Operations::bias_gradient(const Tensor& dy, const Tensor& db) {
  submit_scratch(
      "bias gradient", {.reads = {dy}, .writes = {db}},
      [shape = dense_shape(dy)](Maths& m, Stream& s, Inputs in, Outputs out, Scratch scratch) {
        m.dense_bias_gradient(s, shape, in[0], out[0], scratch);
      });
}

void Operations::relu_and_bias_gradient(const Tensor& y, const Tensor& dy, const Tensor& db) {
  submit_scratch(
      "relu and bias gradient", {.reads = {y, dy}, .writes = {dy, db}},
      [shape = dense_shape(dy)](Maths& m, Stream& s, Inputs in, Outputs out, Scratch scratch) {
        m.relu_and_bias_gradient(s, shape, in[0], out[0], out[1], scratch);
      });
}

Tensor Operations::l2_loss(const Tensor& prediction, const Tensor& targets) {
  Tensor loss = empty({1}, "loss");
  submit_scratch("loss", {.reads = {prediction, targets}, .writes = {loss}},
                 [](Maths& m, Stream& s, Inputs in, Outputs out, Scratch scratch) {
                   m.l2_loss(s, in[0], in[1], out[0], scratch);
                 });
  return loss;
}

Tensor Operations::l2_loss_gradient(const Tensor& prediction, const Tensor& targets) {
  Tensor gradient = empty(prediction.shape(), "loss gradient");
  submit("loss gradient", {.reads = {prediction, targets}, .writes = {gradient}},
         [](Maths& m, Stream& s, Inputs in, Outputs out) {
           m.l2_loss_gradient(s, in[0], in[1], out[0]);
         });
  return gradient;
}

Tensor Operations::softmax_loss(const Tensor& logits, const Tensor& labels) {
  Tensor loss = empty({1}, "loss");
  submit_scratch(
      "loss", {.reads = {logits, labels}, .writes = {loss}},
      [shape = logit_shape(logits)](Maths& m, Stream& s, Inputs in, Outputs out, Scratch scratch) {
        m.softmax_cross_entropy(s, shape, in[0], in[1], out[0], scratch);
      });
  return loss;
}

Tensor Operations::softmax_loss_gradient(const Tensor& logits, const Tensor& labels) {
  Tensor gradient = empty(logits.shape(), "loss gradient");
  submit("loss gradient", {.reads = {logits, labels}, .writes = {gradient}},
         [shape = logit_shape(logits)](Maths& m, Stream& s, Inputs in, Outputs out) {
           m.softmax_cross_entropy_gradient(s, shape, in[0], in[1], out[0]);
         });
  return gradient;
}

Tensor Operations::correct_rows(const Tensor& logits, const Tensor& labels) {
  Tensor correct = empty({1}, "correct");
  submit_scratch(
      "count correct", {.reads = {logits, labels}, .writes = {correct}},
      [shape = logit_shape(logits)](Maths& m, Stream& s, Inputs in, Outputs out, Scratch scratch) {
        m.count_correct(s, shape, in[0], in[1], out[0], scratch);
      });
  return correct;
}

void Operations::step(const Tensor& w, const Tensor& g, float rate) {
  submit("step", {.reads = {g, w}, .writes = {w}},
         [rate](Maths& m, Stream& s, Inputs in, Outputs out) { m.sgd(s, out[0], in[0], rate); },
         {rate});
}

void Operations::step_with_momentum(const Tensor& w, const Tensor& g, const Tensor& v, float rate,
                                    float momentum) {
  submit("step", {.reads = {g, w, v}, .writes = {w, v}},
         [rate, momentum](Maths& m, Stream& s, Inputs in, Outputs out) {
           m.sgd_momentum(s, out[0], in[0], out[1], rate, momentum);
         },
         {rate, momentum});
}

}  // namespace weir
