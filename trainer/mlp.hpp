#pragma once

// A multilayer perceptron on a scheduler: every method submits and returns; nothing here waits.
//
//   forward   h_0 = x,  h_{l+1} = act(h_l · W_l + b_l), relu but for the last layer
//   backward  dW_l = h_lᵀ · dh_{l+1},  db_l = column sums,  dh_l = dh_{l+1} · W_lᵀ masked by relu
//   step      v = momentum · v + g;  w = w − lr · v   (PyTorch's convention; plain SGD without v)
//
// One thread at a time.

#include <cstdint>
#include <span>
#include <vector>

#include "scheduler/scheduler.hpp"
#include "scheduler/tensor.hpp"

namespace weir {

class Mlp {
 public:
  /// Weights W_l [widths[l] × widths[l+1]] drawn from N(0, 2 / widths[l]) (He et al. 2015), biases
  /// zero. At least two widths. The gradients get their memory here too.
  Mlp(Scheduler& scheduler, std::span<const std::size_t> widths, std::uint64_t seed);

  /// A model to infer with, of these parameters (those of the widths, in the order of
  /// `read_parameters`), which must stay as they are until the copies are done. It cannot be
  /// trained.
  Mlp(Scheduler& scheduler, std::span<const std::size_t> widths,
      std::span<const std::vector<float>> parameters);

  /// What the backward pass needs of a forward pass: h_0 … h_last.
  using Tape = std::vector<Tensor>;

  /// x [rows × widths.front()] → the tape, whose last tensor is the prediction
  /// [rows × widths.back()].
  [[nodiscard]] Tape forward(const Tensor& x);
  /// x [rows × widths.front()] → the prediction alone; what lies between is let go of on the way.
  [[nodiscard]] Tensor infer(const Tensor& x);
  /// Writes the gradients from the loss's gradient at the prediction, and lets go of the tape's
  /// tensors as it passes them.
  void backward(Tape tape, Tensor gradient);
  void step(float learning_rate, float momentum);

  /// Parameters in the order W_0, b_0, W_1, … Waits for them.
  [[nodiscard]] std::vector<std::vector<float>> read_parameters();
  [[nodiscard]] const std::vector<Tensor>& parameters() const noexcept { return parameters_; }

 private:
  /// Submits layer `l`: h_l → h_{l+1}.
  [[nodiscard]] Tensor dense(std::size_t l, const Tensor& x);
  [[nodiscard]] std::size_t layers() const noexcept { return parameters_.size() / 2; }
  [[nodiscard]] const Tensor& weights(std::size_t l) const { return parameters_[2 * l]; }
  [[nodiscard]] const Tensor& bias(std::size_t l) const { return parameters_[2 * l + 1]; }

  Scheduler& scheduler_;
  std::vector<Tensor> parameters_;
  std::vector<Tensor> gradients_;   ///< of the parameters, in their order
  std::vector<Tensor> velocities_;  ///< likewise; made by the first step with momentum
};

/// Submits loss [1] = the L2 loss of the prediction and the targets; see kernels/loss.hpp.
[[nodiscard]] Tensor l2_loss(Scheduler& scheduler, const Tensor& prediction, const Tensor& targets);
/// Submits the loss's gradient at the prediction, of its shape.
[[nodiscard]] Tensor l2_loss_gradient(Scheduler& scheduler, const Tensor& prediction,
                                      const Tensor& targets);
/// The same for softmax and cross-entropy: logits [rows × classes], labels [rows]; see
/// kernels/classification.hpp.
[[nodiscard]] Tensor softmax_loss(Scheduler& scheduler, const Tensor& logits, const Tensor& labels);
[[nodiscard]] Tensor softmax_loss_gradient(Scheduler& scheduler, const Tensor& logits,
                                           const Tensor& labels);
/// Submits count [1] = how many labels have the largest logit of their row.
[[nodiscard]] Tensor correct_rows(Scheduler& scheduler, const Tensor& logits, const Tensor& labels);
/// Submits total += value, in place.
void accumulate(Scheduler& scheduler, const Tensor& total, const Tensor& value);
/// A new tensor filled with `value`.
[[nodiscard]] Tensor filled(Scheduler& scheduler, const Shape& shape, float value,
                            std::string_view label);

}  // namespace weir
