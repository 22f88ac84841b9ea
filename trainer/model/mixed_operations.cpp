#include "trainer/model/mixed_operations.hpp"

#include <utility>

#include "allocator/base/error.hpp"
#include "trainer/model/maths.hpp"

namespace weir {
namespace {

/// Returns what a product reads of a factor.
const Tensor& operand(const Factor& factor) { return factor.words ? factor.words : factor.values; }

}  // namespace

Tensor MixedOperations::empty_words(const Tensor& values, std::string_view label) {
  return operations_.empty({half_word_floats(values.shape().elements())}, label);
}

Factor MixedOperations::factor(Tensor values) {
  const auto kind = half_kind(precision_);
  if (!kind) return {std::move(values), {}};
  Tensor words = empty_words(values, "16-bit copy");
  operations_.submit("to 16 bits", {.reads = {values}, .writes = {words}},
                     [kind = *kind](Maths& m, Stream& s, Inputs in, Outputs out) {
                       m.to_half(s, kind, in[0], out[0]);
                     });
  return {std::move(values), std::move(words)};
}

Factor MixedOperations::scaled_factor(Tensor values, const Tensor& state) {
  const auto kind = half_kind(precision_);
  if (!kind) throw UsageError("only factors of 16 bits are scaled");
  Tensor words = empty_words(values, "16-bit copy");
  operations_.submit("scale loss", {.reads = {values, state}, .writes = {values, words}},
                     [kind = *kind](Maths& m, Stream& s, Inputs in, Outputs out) {
                       m.scale_to_half(s, kind, in[1], out[0], out[1]);
                     });
  return {std::move(values), std::move(words)};
}

void MixedOperations::add_copy(Parameter& weights) {
  const auto kind = half_kind(precision_);
  if (!kind) return;
  weights.kind = *kind;
  weights.words = factor(weights.value).words;
}

template <typename Product>
void MixedOperations::submit_product(std::string_view name, const Uses& uses, Product product,
                                     CallSite where) {
  operations_.submit_scratch(
      name, uses,
      [precision = precision_, product](Maths& m, Stream& s, Inputs in, Outputs out,
                                        Scratch scratch) {
        if (const auto kind = half_kind(precision)) return product(m, s, *kind, in, out, scratch);
        product(m, s, precision, in, out, scratch);
      },
      {}, where);
}

Tensor MixedOperations::dense(const Factor& x, const Factor& w, const Tensor& b,
                              Activation activation) {
  const DenseShape shape{
      .m = x.values.shape()[0], .k = w.values.shape()[0], .n = w.values.shape()[1]};
  Tensor y = operations_.empty({shape.m, shape.n}, "activations");
  submit_product("dense", {.reads = {operand(x), operand(w), b}, .writes = {y}},
                 [shape, activation](Maths& m, Stream& s, auto format, Inputs in, Outputs out,
                                     Scratch scratch) {
                   m.dense_forward(s, format, shape, in[0], in[1], in[2], out[0], activation,
                                   scratch);
                 });
  return y;
}

void MixedOperations::weight_gradient(const Factor& x, const Factor& dy, const Tensor& dw) {
  const DenseShape shape{
      .m = dy.values.shape()[0], .k = x.values.shape()[1], .n = dy.values.shape()[1]};
  submit_product(
      "weight gradient", {.reads = {operand(x), operand(dy)}, .writes = {dw}},
      [shape](Maths& m, Stream& s, auto format, Inputs in, Outputs out, Scratch scratch) {
        m.dense_weight_gradient(s, format, shape, in[0], in[1], out[0], scratch);
      });
}

Tensor MixedOperations::input_gradient(const Factor& dy, const Factor& w) {
  const DenseShape shape{
      .m = dy.values.shape()[0], .k = w.values.shape()[0], .n = w.values.shape()[1]};
  Tensor dx = operations_.empty({shape.m, shape.k}, "activation gradients");
  submit_product(
      "input gradient", {.reads = {operand(dy), operand(w)}, .writes = {dx}},
      [shape](Maths& m, Stream& s, auto format, Inputs in, Outputs out, Scratch scratch) {
        m.dense_input_gradient(s, format, shape, in[0], in[1], out[0], scratch);
      });
  return dx;
}

void MixedOperations::flag_not_finite(const Tensor& x, const Tensor& state) {
  operations_.submit(
      "check gradient", {.reads = {x, state}, .writes = {state}},
      [](Maths& m, Stream& s, Inputs in, Outputs out) { m.flag_not_finite(s, in[0], out[0]); });
}

}  // namespace weir
