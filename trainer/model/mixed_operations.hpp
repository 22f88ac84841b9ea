#pragma once

// The products of dense layers in a chosen precision, as operations on a scheduler: every method
// submits and returns without waiting. Sums, biases and all that is not a factor of a product are
// float32. See kernels/dense.hpp. One thread at a time.

#include "kernels/precision/precision.hpp"
#include "scheduler/tensor.hpp"
#include "trainer/model/operations.hpp"
#include "trainer/model/optimizer_operations.hpp"

namespace weir {

/// A matrix that is multiplied, and its copy in 16 bits if the precision has them.
struct Factor {
  Tensor values;
  Tensor words{};  ///< see half_words; empty for factors of 32 bits
};

class MixedOperations {
 public:
  /// `operations` must outlive it.
  MixedOperations(Operations& operations, Precision precision)
      : operations_(operations), precision_(precision) {}

  /// Returns the matrix as a factor, with its copy made.
  [[nodiscard]] Factor factor(Tensor values);
  /// The same, after the values are multiplied by the loss scale of `state`, in place. Throws
  /// UsageError unless factors have 16 bits.
  [[nodiscard]] Factor scaled_factor(Tensor values, const Tensor& state);
  /// Gives weights a copy, which the optimizer keeps up to date.
  void add_copy(Parameter& weights);
  [[nodiscard]] static Factor factor_of(const Parameter& weights) {
    return {weights.value, weights.words};
  }

  /// x [m × k], w [k × n], b [n] → act(x · w + b) [m × n].
  [[nodiscard]] Tensor dense(const Factor& x, const Factor& w, const Tensor& b,
                             Activation activation);
  /// dw [k × n] from the layer's input x [m × k] and the gradient dy [m × n].
  void weight_gradient(const Factor& x, const Factor& dy, const Tensor& dw);
  /// Returns the gradient at the layer's input, [m × k].
  [[nodiscard]] Tensor input_gradient(const Factor& dy, const Factor& w);

  /// Sets the overflow flag of the step's state if an element of x is not finite.
  void flag_not_finite(const Tensor& x, const Tensor& state);

 private:
  [[nodiscard]] Tensor empty_words(const Tensor& values, std::string_view label);
  /// Submits `product(maths, stream, format, in, out, scratch)`, with the precision or, of 16 bits,
  /// the kind of words as its format.
  template <typename Product>
  void submit_product(std::string_view name, const Uses& uses, Product product,
                      CallSite where = CallSite::here());

  Operations& operations_;
  const Precision precision_;
};

}  // namespace weir
