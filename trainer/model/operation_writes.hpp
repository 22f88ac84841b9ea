#pragma once

// The tensors that an operation with a workspace writes.

#include <array>
#include <cstddef>
#include <span>
#include <utility>

#include "scheduler/scheduler.hpp"
#include "scheduler/tensor.hpp"

namespace weir {

class OperationWrites {
 public:
  /// The workspace comes last, if there is one.
  OperationWrites(const Tensor& workspace, Tensor first, Tensor second = {})
      : tensors_{std::move(first), std::move(second)}, count_(tensors_[1] ? 2 : 1) {
    if (workspace) tensors_.at(count_++) = workspace;
  }
  /// Valid as long as this object.
  [[nodiscard]] TensorList list() const { return std::span(tensors_).first(count_); }

 private:
  std::array<Tensor, 3> tensors_;
  std::size_t count_;
};

/// Returns the workspace: the output after the operation's `own` tensors, or empty.
[[nodiscard]] inline std::span<float> workspace_behind(std::size_t own, const Outputs& out) {
  return out.size() > own ? out[own] : std::span<float>();
}

}  // namespace weir
