#include "trainer/model/operations.hpp"

#include <span>

#include "trainer/model/operation_writes.hpp"

namespace weir {
namespace {

LogitShape logit_shape(const Tensor& logits) {
  return {.rows = logits.shape()[0], .classes = logits.shape()[1]};
}

/// Returns the shape of a layer whose output, or the gradient there, is y.
DenseShape dense_shape(const Tensor& y, std::size_t inputs) {
  return {.m = y.shape()[0], .k = inputs, .n = y.shape()[1]};
}

}  // namespace

Operations::Operations(Scheduler& scheduler, Maths& maths) : submitter_(scheduler), maths_(maths) {
  const std::size_t elements = maths.workspace().count / sizeof(float);
  if (elements == 0) return;
  workspace_ = submitter_.empty({elements}, "workspace");
  // Allocates it now, outside any batch's charge.
  submitter_.submit("workspace", {.writes = {workspace_}}, [](Stream&, Inputs, Outputs) {});
}

Tensor Operations::filled(const Shape& shape, float value, std::string_view label,
                          StreamRole stream) {
  Tensor tensor = submitter_.empty(shape, label);
  fill(tensor, value, stream);
  return tensor;
}

Tensor Operations::drawn(const Shape& shape, NormalDraw draw, std::string_view label,
                         StreamRole stream) {
  Tensor tensor = submitter_.empty(shape, label);
  this->draw(tensor, draw, stream);
  return tensor;
}

void Operations::fill(const Tensor& tensor, float value, StreamRole stream) {
  submitter_.submit(
      "fill", {.writes = {tensor}, .stream = stream},
      [maths = &maths_, value](Stream& s, Inputs, Outputs out) { maths->fill(s, value, out[0]); },
      {value});
}

void Operations::draw(const Tensor& tensor, NormalDraw draw, StreamRole stream) {
  submitter_.submit("draw", {.writes = {tensor}, .stream = stream},
                    [maths = &maths_, draw](Stream& s, Inputs, Outputs out) {
                      maths->fill_normal(s, draw, out[0]);
                    },
                    {static_cast<double>(draw.seed), static_cast<double>(draw.sequence),
                     draw.deviation, static_cast<double>(draw.first)});
}

void Operations::accumulate(const Tensor& total, const Tensor& value) {
  submitter_.submit(
      "accumulate", {.reads = {value, total}, .writes = {total}},
      [maths = &maths_](Stream& s, Inputs in, Outputs out) { maths->add(s, in[0], out[0]); });
}

Tensor Operations::dense(const Tensor& x, const Tensor& w, const Tensor& b, Activation activation) {
  const DenseShape shape{.m = x.shape()[0], .k = w.shape()[0], .n = w.shape()[1]};
  Tensor y = submitter_.empty({shape.m, shape.n}, "activations");
  const OperationWrites writes(workspace_, y);
  submitter_.submit("dense", {.reads = {x, w, b}, .writes = writes.list()},
                    [maths = &maths_, shape, activation](Stream& s, Inputs in, Outputs out) {
                      maths->dense_forward(s, shape, in[0], in[1], in[2], out[0], activation,
                                           workspace_behind(1, out));
                    });
  return y;
}

void Operations::bias_activation(const Tensor& b, const Tensor& y, Activation activation) {
  submitter_.submit(
      "bias and activation", {.reads = {b, y}, .writes = {y}},
      [maths = &maths_, shape = dense_shape(y, 0), activation](Stream& s, Inputs in, Outputs out) {
        maths->bias_activation(s, shape, in[0], out[0], activation);
      });
}

void Operations::weight_gradient(const Tensor& x, const Tensor& dy, const Tensor& dw) {
  const OperationWrites writes(workspace_, dw);
  submitter_.submit(
      "weight gradient", {.reads = {x, dy}, .writes = writes.list()},
      [maths = &maths_, shape = dense_shape(dy, x.shape()[1])](Stream& s, Inputs in, Outputs out) {
        maths->dense_weight_gradient(s, shape, in[0], in[1], out[0], workspace_behind(1, out));
      });
}

void Operations::bias_gradient(const Tensor& dy, const Tensor& db) {
  const OperationWrites writes(workspace_, db);
  submitter_.submit(
      "bias gradient", {.reads = {dy}, .writes = writes.list()},
      [maths = &maths_, shape = dense_shape(dy, 0)](Stream& s, Inputs in, Outputs out) {
        maths->dense_bias_gradient(s, shape, in[0], out[0], workspace_behind(1, out));
      });
}

void Operations::relu_and_bias_gradient(const Tensor& y, const Tensor& dy, const Tensor& db) {
  const OperationWrites writes(workspace_, dy, db);
  submitter_.submit(
      "relu and bias gradient", {.reads = {y, dy}, .writes = writes.list()},
      [maths = &maths_, shape = dense_shape(dy, 0)](Stream& s, Inputs in, Outputs out) {
        maths->relu_and_bias_gradient(s, shape, in[0], out[0], out[1], workspace_behind(2, out));
      });
}

Tensor Operations::input_gradient(const Tensor& dy, const Tensor& w) {
  const DenseShape shape = dense_shape(dy, w.shape()[0]);
  Tensor dx = submitter_.empty({shape.m, shape.k}, "activation gradients");
  const OperationWrites writes(workspace_, dx);
  submitter_.submit("input gradient", {.reads = {dy, w}, .writes = writes.list()},
                    [maths = &maths_, shape](Stream& s, Inputs in, Outputs out) {
                      maths->dense_input_gradient(s, shape, in[0], in[1], out[0],
                                                  workspace_behind(1, out));
                    });
  return dx;
}

Tensor Operations::l2_loss(const Tensor& prediction, const Tensor& targets) {
  Tensor loss = submitter_.empty({1}, "loss");
  const OperationWrites writes(workspace_, loss);
  submitter_.submit("loss", {.reads = {prediction, targets}, .writes = writes.list()},
                    [maths = &maths_](Stream& s, Inputs in, Outputs out) {
                      maths->l2_loss(s, in[0], in[1], out[0], workspace_behind(1, out));
                    });
  return loss;
}

Tensor Operations::l2_loss_gradient(const Tensor& prediction, const Tensor& targets) {
  Tensor gradient = submitter_.empty(prediction.shape(), "loss gradient");
  submitter_.submit("loss gradient", {.reads = {prediction, targets}, .writes = {gradient}},
                    [maths = &maths_](Stream& s, Inputs in, Outputs out) {
                      maths->l2_loss_gradient(s, in[0], in[1], out[0]);
                    });
  return gradient;
}

Tensor Operations::softmax_loss(const Tensor& logits, const Tensor& labels) {
  Tensor loss = submitter_.empty({1}, "loss");
  const OperationWrites writes(workspace_, loss);
  submitter_.submit(
      "loss", {.reads = {logits, labels}, .writes = writes.list()},
      [maths = &maths_, shape = logit_shape(logits)](Stream& s, Inputs in, Outputs out) {
        maths->softmax_cross_entropy(s, shape, in[0], in[1], out[0], workspace_behind(1, out));
      });
  return loss;
}

Tensor Operations::softmax_loss_gradient(const Tensor& logits, const Tensor& labels) {
  Tensor gradient = submitter_.empty(logits.shape(), "loss gradient");
  submitter_.submit(
      "loss gradient", {.reads = {logits, labels}, .writes = {gradient}},
      [maths = &maths_, shape = logit_shape(logits)](Stream& s, Inputs in, Outputs out) {
        maths->softmax_cross_entropy_gradient(s, shape, in[0], in[1], out[0]);
      });
  return gradient;
}

Tensor Operations::correct_rows(const Tensor& logits, const Tensor& labels) {
  Tensor correct = submitter_.empty({1}, "correct");
  const OperationWrites writes(workspace_, correct);
  submitter_.submit(
      "count correct", {.reads = {logits, labels}, .writes = writes.list()},
      [maths = &maths_, shape = logit_shape(logits)](Stream& s, Inputs in, Outputs out) {
        maths->count_correct(s, shape, in[0], in[1], out[0], workspace_behind(1, out));
      });
  return correct;
}

void Operations::step(const Tensor& w, const Tensor& g, float rate) {
  submitter_.submit("step", {.reads = {g, w}, .writes = {w}},
                    [maths = &maths_, rate](Stream& s, Inputs in, Outputs out) {
                      maths->sgd(s, out[0], in[0], rate);
                    },
                    {rate});
}

void Operations::step_with_momentum(const Tensor& w, const Tensor& g, const Tensor& v, float rate,
                                    float momentum) {
  submitter_.submit("step", {.reads = {g, w, v}, .writes = {w, v}},
                    [maths = &maths_, rate, momentum](Stream& s, Inputs in, Outputs out) {
                      maths->sgd_momentum(s, out[0], in[0], out[1], rate, momentum);
                    },
                    {rate, momentum});
}

}  // namespace weir
