#pragma once

// A multilayer perceptron on a scheduler: every method submits and returns; nothing here waits.
//
//   forward   h_0 = x,  h_{l+1} = act(h_l · W_l + b_l), relu but for the last layer
//   backward  dh_{l+1} masked by relu,  db_l = its column sums,  dW_l = h_lᵀ · dh_{l+1},
//             dh_l = dh_{l+1} · W_lᵀ
//   step      v = momentum · v + g;  w = w − lr · v   (PyTorch's convention; plain SGD without v)
//
// One thread at a time.

#include <cstdint>
#include <span>
#include <vector>

#include "scheduler/tensor.hpp"
#include "trainer/model/mixed_operations.hpp"
#include "trainer/model/operations.hpp"

namespace weir {

class Mlp {
 public:
  /// Draws weights W_l [widths[l] × widths[l+1]] from N(0, 2 / widths[l]) (He et al. 2015), sets
  /// biases to zero, and allocates the gradients. At least two widths. `operations` must outlive
  /// the model.
  Mlp(Operations& operations, std::span<const std::size_t> widths, std::uint64_t seed);

  /// A model for inference with these parameters, in the order of `read_parameters`. They must not
  /// change until the copies are done. It cannot be trained.
  Mlp(Operations& operations, std::span<const std::size_t> widths,
      std::span<const std::vector<float>> parameters);

  /// The tensors of a forward pass that the backward pass needs: h_0 … h_last.
  using Tape = std::vector<Tensor>;

  /// x [rows × widths.front()] → the tape, whose last tensor is the prediction
  /// [rows × widths.back()].
  [[nodiscard]] Tape forward(const Tensor& x);
  /// x [rows × widths.front()] → the prediction alone; drops the tensors in between.
  [[nodiscard]] Tensor infer(const Tensor& x);
  /// Computes the gradients from the loss's gradient at the prediction, and drops the tape's
  /// tensors once used.
  void backward(Tape tape, Tensor gradient);
  void step(float learning_rate, float momentum);
  /// Creates what steps with momentum need; otherwise the first of them does. A model that has it
  /// keeps it.
  void make_velocities();

  /// Returns the parameters in the order W_0, b_0, W_1, … Waits for them.
  [[nodiscard]] std::vector<std::vector<float>> read_parameters();
  [[nodiscard]] const std::vector<Tensor>& parameters() const noexcept { return parameters_; }

 private:
  /// Submits layer `l`: h_l → h_{l+1}.
  [[nodiscard]] Tensor dense(std::size_t l, const Tensor& x);
  [[nodiscard]] bool has_relu(std::size_t l) const noexcept { return l + 1 < layers(); }
  [[nodiscard]] std::size_t layers() const noexcept { return parameters_.size() / 2; }
  [[nodiscard]] const Tensor& weights(std::size_t l) const { return parameters_[2 * l]; }
  [[nodiscard]] const Tensor& bias(std::size_t l) const { return parameters_[2 * l + 1]; }

  Operations& operations_;
  MixedOperations products_{operations_, Precision::kFloat32};
  std::vector<Tensor> parameters_;
  std::vector<Tensor> gradients_;   ///< in the order of the parameters
  std::vector<Tensor> velocities_;  ///< likewise; created by make_velocities
};

}  // namespace weir
