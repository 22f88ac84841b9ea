#pragma once

// The first layer of a wide network on another device than the rest: its weights, their moments and
// their updates. Its outputs go over to the rest, and the gradients at its inputs to the relu come
// back. docs/placement.md follows one batch.
//
// Every method submits and returns; nothing here waits. One thread at a time.

#include <string_view>

#include "scheduler/device_link.hpp"
#include "scheduler/tensor.hpp"
#include "trainer/model/operations.hpp"
#include "trainer/model/optimizer_operations.hpp"
#include "trainer/model/sparse_operations.hpp"

namespace weir {

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

}  // namespace weir
