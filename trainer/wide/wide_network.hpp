#pragma once

// A fully connected network whose input is sparse, with its optimizer, on a scheduler: every method
// submits and returns; nothing here waits.
//
//   forward   h_1 = relu(X · W_0 + b_0), X sparse;  h_{l+1} = relu(h_l · W_l + b_l);  the last
//             layer has no relu: its outputs are the logits
//   step      the backward pass of Mlp, then the optimizer's step. The gradient of W_0 is summed up
//             while W_0 is changed, and never stored; see kernels/optimizer/update.hpp
//
// Several ranks may share it: see Parallel. Then every rank calls the same methods.
//
// One thread at a time.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/device_link.hpp"
#include "scheduler/tensor.hpp"
#include "trainer/model/mixed_operations.hpp"
#include "trainer/model/operations.hpp"
#include "trainer/model/optimizer_operations.hpp"
#include "trainer/model/sparse_operations.hpp"
#include "trainer/wide/wide_ranks.hpp"

namespace weir {

/// The first layer of a wide network on another device than the rest: its weights, their moments
/// and their updates. Its outputs go over to the rest, and the gradients at its inputs to the relu
/// come back. docs/placement.md follows one batch. Every method submits and returns.
class PlacedLayer {
 public:
  /// `here` is of the layer's device, and `link` leads from there to `rest`. All must outlive it.
  PlacedLayer(Operations& here, Scheduler& rest, DeviceLink& link, const OptimizerOptions& options)
      : operations_(here), rest_(rest), link_(link), sparse_(here), optimizer_(here, options) {}

  /// Makes parameters of the layer.
  [[nodiscard]] Operations& operations() noexcept { return operations_; }
  [[nodiscard]] OptimizerOperations& optimizer() noexcept { return optimizer_; }

  /// Returns the batch of this device with a copy of its labels for the rest.
  [[nodiscard]] PackedTensor with_labels(PackedTensor batch);
  /// Returns relu(X · w + b) [rows × n], for the rest.
  [[nodiscard]] Tensor forward(const PackedTensor& batch, const Tensor& w, const Tensor& b);
  /// Changes the layer by what the rest has: the gradient dy [rows × n] at its output, behind the
  /// relu's mask, db [n], and the state of the step that it has begun.
  void update(const Parameter& w, const Parameter& b, const PackedTensor& batch, const Tensor& dy,
              const Tensor& db, const Tensor& state, UpdatedRows rows);

 private:
  [[nodiscard]] Tensor fetch(const Tensor& tensor, std::string_view label) {
    return link_.copy_to(operations_.scheduler(), tensor, label);
  }

  Operations& operations_;
  Scheduler& rest_;
  DeviceLink& link_;
  SparseOperations sparse_;
  OptimizerOperations optimizer_;
};

struct WideOptions {
  /// Inputs, hidden widths, outputs: at least one hidden.
  std::vector<std::size_t> widths;
  std::uint64_t seed = 1;
  /// Of the first layer's weights. sqrt(2 / s), where s is the mean of the rows' sums of squares,
  /// keeps the size of what goes through the layer, as He et al. 2015 do for dense inputs, whose s
  /// is their number.
  float first_deviation = 1;
  SparseLoss loss = SparseLoss::kSoftmax;
  OptimizerOptions optimizer{};
  UpdatedRows rows = UpdatedRows::kAll;
  /// Of the dense layers' products. In kFp16 the loss is scaled, see kernels/optimizer/update.hpp.
  Precision precision = Precision::kFloat32;
  WideRanks ranks{};
  std::uint64_t batch_rows = 0;  ///< of a whole batch; for ranks that share its rows
};

/// Returns the number of weights and biases of a fully connected network.
[[nodiscard]] std::uint64_t parameter_count(const std::vector<std::size_t>& widths) noexcept;

class WideNetwork {
 public:
  /// Draws the weights, as Mlp does, and allocates the moments and the gradients of all layers but
  /// the first. `operations` must outlive it. The first layer lives where `first` says, if given;
  /// then batches are of its device, with labels for the others (PlacedLayer::with_labels). Throws
  /// UsageError for fewer than three widths, and OutOfMemory.
  WideNetwork(Operations& operations, WideOptions options, PlacedLayer* first = nullptr);

  /// h_1 … h_last as factors of products; the last are the logits [rows × outputs].
  using Tape = std::vector<Factor>;

  [[nodiscard]] Tape forward(const PackedTensor& batch);
  /// The logits alone; drops the tensors in between.
  [[nodiscard]] Tensor infer(const PackedTensor& batch);
  /// Changes the parameters by the loss of this forward pass, and returns the loss [1]. Drops the
  /// tape's tensors once used; the logits become their gradient.
  [[nodiscard]] Tensor step(const PackedTensor& batch, Tape tape);
  /// See SparseOperations::hits.
  [[nodiscard]] Tensor hits(const Tensor& logits, const PackedTensor& batch);
  /// Where ranks share rows, a batch's loss and hits are this rank's part, until this replaces them
  /// by their sums.
  void add_up_rows(std::span<const Tensor> figures);

  /// Makes the 16-bit copies of the weights again. Call it after writing the parameters from
  /// outside.
  void refresh_copies();
  /// W_0, b_0, W_1, … What this rank has of them.
  [[nodiscard]] const std::vector<Parameter>& parameters() const noexcept { return parameters_; }
  /// The optimizer's; see kernels/parts/step_state.hpp.
  [[nodiscard]] const Tensor& step_state() const noexcept { return optimizer_.state(); }

 private:
  [[nodiscard]] Tensor sparse_layer(const PackedTensor& batch);
  void update_first(const PackedTensor& batch, const Tensor& dy);
  /// Draws the weights of layer `l`, or this rank's part of them.
  [[nodiscard]] Tensor draw_weights(Operations& there, std::size_t l, const std::string& name);
  [[nodiscard]] Tensor first_layer(const PackedTensor& batch);
  /// Submits layer `l`, from 1 on.
  [[nodiscard]] Tensor dense(std::size_t l, const Factor& x);
  /// Fills the gradients of all layers but the first one's weights. Returns the gradient at the
  /// first layer's output, before its activation. The tape ends with the gradient at the logits.
  [[nodiscard]] Tensor backward(Tape tape);
  [[nodiscard]] bool scales() const noexcept { return options_.precision == Precision::kFp16; }
  [[nodiscard]] std::size_t layers() const noexcept { return parameters_.size() / 2; }
  [[nodiscard]] Factor weights(std::size_t l) const {
    return MixedOperations::factor_of(parameters_[2 * l]);
  }
  [[nodiscard]] const Tensor& bias(std::size_t l) const { return parameters_[2 * l + 1].value; }

  Operations& operations_;
  PlacedLayer* const first_;  ///< null: with the others
  SparseOperations sparse_;
  const WideOptions options_;
  WideExchange exchange_;
  MixedOperations mixed_;
  OptimizerOperations optimizer_;
  std::vector<Parameter> parameters_;
  std::vector<Tensor> gradients_;  ///< in the order of the parameters; the first is empty
  Tensor no_bias_;                 ///< zeros, where the first layer is a sum over ranks
};

}  // namespace weir
