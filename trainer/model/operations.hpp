#pragma once

// The maths of a model as operations on a scheduler: every method submits and returns without
// waiting. See maths.hpp for what each operation computes. One thread at a time.

#include <string_view>

#include "scheduler/scheduler.hpp"
#include "scheduler/tensor.hpp"
#include "trainer/model/maths.hpp"
#include "trainer/model/submitter.hpp"

namespace weir {

class Operations {
 public:
  /// Allocates the workspace that the maths needs, if any: one tensor of the scheduler's pool, and
  /// so of the budget. Every operation that needs it writes it. Both must outlive what is
  /// submitted. Throws OutOfMemory if the workspace does not fit.
  Operations(Scheduler& scheduler, Maths& maths);

  [[nodiscard]] Scheduler& scheduler() const noexcept { return submitter_.scheduler(); }
  /// Where its operations go; more operations on the same tensors are submitted there too.
  [[nodiscard]] Submitter& submitter() noexcept { return submitter_; }
  [[nodiscard]] Maths& maths() const noexcept { return maths_; }
  /// Empty if the maths needs none.
  [[nodiscard]] const Tensor& workspace() const noexcept { return workspace_; }

  /// Returns a new tensor filled with `value`.
  [[nodiscard]] Tensor filled(const Shape& shape, float value, std::string_view label,
                              StreamRole stream = StreamRole::kCompute);
  /// Returns a new tensor of normal numbers.
  [[nodiscard]] Tensor drawn(const Shape& shape, NormalDraw draw, std::string_view label,
                             StreamRole stream = StreamRole::kCompute);
  /// The same in a tensor that there is.
  void fill(const Tensor& tensor, float value, StreamRole stream = StreamRole::kCompute);
  void draw(const Tensor& tensor, NormalDraw draw, StreamRole stream = StreamRole::kCompute);
  /// total += value, in place.
  void accumulate(const Tensor& total, const Tensor& value);

  /// x [m × k], w [k × n], b [n] → act(x · w + b) [m × n].
  [[nodiscard]] Tensor dense(const Tensor& x, const Tensor& w, const Tensor& b,
                             Activation activation);
  /// y [m × n] = act(y + b), in place.
  void bias_activation(const Tensor& b, const Tensor& y, Activation activation);
  /// dw [k × n] from the layer's input x [m × k] and the gradient dy [m × n].
  void weight_gradient(const Tensor& x, const Tensor& dy, const Tensor& dw);
  /// db [n] = the column sums of dy [m × n].
  void bias_gradient(const Tensor& dy, const Tensor& db);
  /// The same for a layer with a relu: first masks dy by the layer's output y, in place.
  void relu_and_bias_gradient(const Tensor& y, const Tensor& dy, const Tensor& db);
  /// Returns the gradient at the layer's input, [m × k].
  [[nodiscard]] Tensor input_gradient(const Tensor& dy, const Tensor& w);

  /// Returns loss [1], the L2 loss of the prediction and the targets; see kernels/loss.hpp.
  [[nodiscard]] Tensor l2_loss(const Tensor& prediction, const Tensor& targets);
  /// Returns the loss's gradient at the prediction, in its shape.
  [[nodiscard]] Tensor l2_loss_gradient(const Tensor& prediction, const Tensor& targets);
  /// The same for softmax and cross-entropy: logits [rows × classes], labels [rows]; see
  /// kernels/loss.hpp.
  [[nodiscard]] Tensor softmax_loss(const Tensor& logits, const Tensor& labels);
  [[nodiscard]] Tensor softmax_loss_gradient(const Tensor& logits, const Tensor& labels);
  /// Returns count [1]: how many labels have the largest logit of their row.
  [[nodiscard]] Tensor correct_rows(const Tensor& logits, const Tensor& labels);

  /// w -= rate · g, in place.
  void step(const Tensor& w, const Tensor& g, float rate);
  /// v = momentum · v + g, then w -= rate · v, in place.
  void step_with_momentum(const Tensor& w, const Tensor& g, const Tensor& v, float rate,
                          float momentum);

 private:
  Submitter submitter_;
  Maths& maths_;
  Tensor workspace_;  ///< empty if the maths needs none
};

}  // namespace weir
