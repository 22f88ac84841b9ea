#pragma once

/// @file
/// Cuts a bias gradient on a device into pieces. Internal to this folder and its tests.

#include <algorithm>
#include <cstddef>

#include "kernels/dense.hpp"

namespace weir::cuda {

/// The most of dy that two launches add up: the sums of its runs fit the workspace.
struct BiasGradientCut {
  std::size_t columns = 0;
  std::size_t rows = 0;  ///< a whole number of runs
};

/// Returns the number of runs of kBiasGradientRows rows; the last may be shorter. `rows` is not 0.
[[nodiscard]] constexpr std::size_t bias_gradient_runs(std::size_t rows) {
  return (rows - 1) / kBiasGradientRows + 1;
}

/// A tile: the runs' sums that a block of the second launch loads at once.
inline constexpr std::size_t kBiasGradientTile = 4096;

/// Returns the columns that a block of the second launch adds up at once, for a piece of `runs`
/// runs. With many runs to load, few columns and so many threads for each. 8 columns are 32 bytes,
/// the least that a device reads.
[[nodiscard]] constexpr std::size_t bias_gradient_width(std::size_t runs) {
  for (const std::size_t width : {std::size_t{256}, std::size_t{32}}) {
    if (runs <= kBiasGradientTile / width) return width;
  }
  return 8;
}

/// For at least one row and one column, and a workspace of at least kWorkspaceElements.
///
/// Cuts rows before columns: pieces of rows share the sequential additions, pieces of columns do
/// not. Cuts columns if a row of sums would leave room for few runs.
[[nodiscard]] constexpr BiasGradientCut cut_bias_gradient(DenseShape shape,
                                                          std::size_t workspace_elements) {
  constexpr std::size_t kEnough = 4096;
  const std::size_t with_all_rows = workspace_elements / bias_gradient_runs(shape.m) / 4 * 4;
  const std::size_t columns = std::min(shape.n, std::max(kEnough, with_all_rows));
  return {.columns = columns, .rows = workspace_elements / columns * kBiasGradientRows};
}

}  // namespace weir::cuda
