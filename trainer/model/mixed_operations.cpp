#include "trainer/model/mixed_operations.hpp"

#include <utility>

#include "allocator/base/error.hpp"
#include "trainer/model/half_words.hpp"
#include "trainer/model/operation_writes.hpp"

namespace weir {
namespace {

/// Returns what a product reads of a factor.
const Tensor& operand(const Factor& factor) { return factor.words ? factor.words : factor.values; }

}  // namespace

Tensor MixedOperations::empty_words(const Tensor& values, std::string_view label) {
  return operations_.submitter().empty({half_word_floats(values.shape().elements())}, label);
}

Factor MixedOperations::factor(Tensor values) {
  const auto kind = half_kind(precision_);
  if (!kind) return {std::move(values), {}};
  Tensor words = empty_words(values, "16-bit copy");
  operations_.submitter().submit(
      "to 16 bits", {.reads = {values}, .writes = {words}},
      [maths = &operations_.maths(), kind = *kind](Stream& s, Inputs in, Outputs out) {
        maths->to_half(s, kind, in[0], out[0]);
      });
  return {std::move(values), std::move(words)};
}

Factor MixedOperations::scaled_factor(Tensor values, const Tensor& state) {
  const auto kind = half_kind(precision_);
  if (!kind) throw UsageError("only factors of 16 bits are scaled");
  Tensor words = empty_words(values, "16-bit copy");
  operations_.submitter().submit(
      "scale loss", {.reads = {values, state}, .writes = {values, words}},
      [maths = &operations_.maths(), kind = *kind](Stream& s, Inputs in, Outputs out) {
        maths->scale_to_half(s, kind, in[1], out[0], out[1]);
      });
  return {std::move(values), std::move(words)};
}

void MixedOperations::add_copy(Parameter& weights) {
  const auto kind = half_kind(precision_);
  if (!kind) return;
  weights.kind = *kind;
  weights.words = factor(weights.value).words;
}

Tensor MixedOperations::dense(const Factor& x, const Factor& w, const Tensor& b,
                              Activation activation) {
  const DenseShape shape{
      .m = x.values.shape()[0], .k = w.values.shape()[0], .n = w.values.shape()[1]};
  Tensor y = operations_.submitter().empty({shape.m, shape.n}, "activations");
  const OperationWrites writes(operations_.workspace(), y);
  operations_.submitter().submit(
      "dense", {.reads = {operand(x), operand(w), b}, .writes = writes.list()},
      [maths = &operations_.maths(), precision = precision_, shape, activation](
          Stream& s, Inputs in, Outputs out) {
        maths->mixed_forward(s, precision, shape, in[0], in[1], in[2], out[0], activation,
                             workspace_behind(1, out));
      });
  return y;
}

void MixedOperations::weight_gradient(const Factor& x, const Factor& dy, const Tensor& dw) {
  const DenseShape shape{
      .m = dy.values.shape()[0], .k = x.values.shape()[1], .n = dy.values.shape()[1]};
  const OperationWrites writes(operations_.workspace(), dw);
  operations_.submitter().submit("weight gradient",
                                 {.reads = {operand(x), operand(dy)}, .writes = writes.list()},
                                 [maths = &operations_.maths(), precision = precision_, shape](
                                     Stream& s, Inputs in, Outputs out) {
                                   maths->mixed_weight_gradient(s, precision, shape, in[0], in[1],
                                                                out[0], workspace_behind(1, out));
                                 });
}

Tensor MixedOperations::input_gradient(const Factor& dy, const Factor& w) {
  const DenseShape shape{
      .m = dy.values.shape()[0], .k = w.values.shape()[0], .n = w.values.shape()[1]};
  Tensor dx = operations_.submitter().empty({shape.m, shape.k}, "activation gradients");
  const OperationWrites writes(operations_.workspace(), dx);
  operations_.submitter().submit("input gradient",
                                 {.reads = {operand(dy), operand(w)}, .writes = writes.list()},
                                 [maths = &operations_.maths(), precision = precision_, shape](
                                     Stream& s, Inputs in, Outputs out) {
                                   maths->mixed_input_gradient(s, precision, shape, in[0], in[1],
                                                               out[0], workspace_behind(1, out));
                                 });
  return dx;
}

void MixedOperations::flag_not_finite(const Tensor& x, const Tensor& state) {
  operations_.submitter().submit("check gradient", {.reads = {x, state}, .writes = {state}},
                                 [maths = &operations_.maths()](Stream& s, Inputs in, Outputs out) {
                                   maths->flag_not_finite(s, in[0], out[0]);
                                 });
}

}  // namespace weir
