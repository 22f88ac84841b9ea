#pragma once

/// @file
/// How a bias gradient on a device is cut into pieces. Internal to this folder and its tests.

#include <algorithm>
#include <cstddef>

#include "kernels/dense.hpp"

namespace weir::cuda {

/// At most so much of dy is added up by two launches: the sums of its runs fit the workspace.
struct BiasGradientCut {
  std::size_t columns = 0;
  std::size_t rows = 0;  ///< a whole number of runs
};

/// Runs of kBiasGradientRows rows, the last one maybe shorter. `rows` is not 0.
[[nodiscard]] constexpr std::size_t bias_gradient_runs(std::size_t rows) {
  return (rows - 1) / kBiasGradientRows + 1;
}

/// Sums of runs that a block of the second launch loads at once: a tile.
inline constexpr std::size_t kBiasGradientTile = 4096;

/// Columns that a block of the second launch adds up at once, for a piece of that many runs. Few
/// columns, and so many threads for each, where there are many runs to load; 8 columns are the 32
/// bytes that a device reads at least.
[[nodiscard]] constexpr std::size_t bias_gradient_width(std::size_t runs) {
  for (const std::size_t width : {std::size_t{256}, std::size_t{32}}) {
    if (runs <= kBiasGradientTile / width) return width;
  }
  return 8;
}

/// For a shape of at least one row and one column, and a workspace of at least kWorkspaceElements.
///
/// Rows are cut before columns: pieces of rows share the additions that have to follow each other,
/// pieces of columns do not. Columns are cut where a row of sums would leave room for few runs.
[[nodiscard]] constexpr BiasGradientCut cut_bias_gradient(DenseShape shape,
                                                          std::size_t workspace_elements) {
  constexpr std::size_t kEnough = 4096;
  const std::size_t with_all_rows = workspace_elements / bias_gradient_runs(shape.m) / 4 * 4;
  const std::size_t columns = std::min(shape.n, std::max(kEnough, with_all_rows));
  return {.columns = columns, .rows = workspace_elements / columns * kBiasGradientRows};
}

}  // namespace weir::cuda
