#pragma once

// The steps of an optimizer as operations on a scheduler: every method submits and returns without
// waiting. See kernels/optimizer for the formulas and kernels/parts/step_state.hpp for the order of
// a step. One thread at a time.

#include <string>
#include <utility>

#include "kernels/optimizer/options.hpp"
#include "kernels/optimizer/update.hpp"
#include "scheduler/tensor.hpp"
#include "trainer/model/operations.hpp"
#include "trainer/model/sparse_operations.hpp"

namespace weir {

/// Weights and what the optimizer keeps for them. Tensors that it does not have are empty.
struct Parameter {
  std::string name;
  Tensor value;
  Tensor first{};                   ///< the first moment, as large as `value`
  Tensor second{};                  ///< the second
  Tensor words{};                   ///< a copy of `value` in 16 bits; see half_words
  HalfKind kind = HalfKind::kBf16;  ///< of `words`
};

class OptimizerOperations {
 public:
  /// Allocates the step's state. `operations` must outlive it. Throws OutOfMemory.
  OptimizerOperations(Operations& operations, const OptimizerOptions& options,
                      const LossScaling& scaling);
  /// For the parameters of one device in a step that is counted on another one: call `follow`
  /// before the updates of each step, and neither `begin` nor `end`.
  OptimizerOperations(Operations& operations, const OptimizerOptions& options)
      : operations_(operations), options_(options), scaling_(kNoLossScaling) {}
  /// Sets the state of the step: a copy of the other one's, after its `begin`.
  void follow(Tensor state) noexcept { state_ = std::move(state); }

  /// Returns a parameter whose moments are zero.
  [[nodiscard]] Parameter parameter(std::string name, Tensor value);

  /// A step: `begin`, the updates, `end`.
  void begin();
  /// Changes the parameter by its gradient.
  void update(const Parameter& parameter, const Tensor& gradient);
  /// Changes the weights [columns × n] of a layer with the batch as its input, by the gradient
  /// dy [rows × n] at the layer's output.
  void update_rows(const Parameter& parameter, const PackedTensor& batch, const Tensor& dy,
                   UpdatedRows rows);
  void end();

  /// Of kStepStateWords elements.
  [[nodiscard]] const Tensor& state() const noexcept { return state_; }

 private:
  Operations& operations_;
  const OptimizerOptions options_;
  const LossScaling scaling_;
  Tensor state_;
};

}  // namespace weir
