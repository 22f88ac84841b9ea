#include <algorithm>
#include <cstddef>
#include <string_view>

#include "kernels/check.hpp"
#include "kernels/dense_cuda.hpp"
#include "kernels/each_cuda.hpp"
#include "kernels/elementwise_cuda.hpp"
#include "kernels/normal.hpp"
#include "kernels/workspace_cuda.hpp"

namespace weir::cuda {
namespace {

/// Scratch in use at a time, and the most columns of a piece: a piece is then at least 64 runs.
/// Little enough to stay in a device's cache, enough for its every thread.
constexpr std::size_t kRunSums = kWorkspaceElements / 4;
constexpr std::size_t kColumnsAtOnce = 4096;

/// A piece of dy: `columns` neighbouring columns of `rows` rows that lie `row_stride` apart.
struct Piece {
  const float* y;  ///< the layer's output at the same place; only looked at by a relu
  float* dy;       ///< only written by a relu
  std::size_t rows;
  std::size_t columns;
  std::size_t row_stride;
};

__device__ inline float masked(float output, float gradient) {
  return output > 0.0F ? gradient : 0.0F;
}

__device__ inline void add_to(float& total, float term) { total = rounded_add(total, term); }
__device__ inline void add_to(float4& total, float4 term) {
  total = float4{rounded_add(total.x, term.x), rounded_add(total.y, term.y),
                 rounded_add(total.z, term.z), rounded_add(total.w, term.w)};
}
__device__ inline float relu_of(float output, float gradient) { return masked(output, gradient); }
__device__ inline float4 relu_of(float4 output, float4 gradient) {
  return float4{masked(output.x, gradient.x), masked(output.y, gradient.y),
                masked(output.z, gradient.z), masked(output.w, gradient.w)};
}

/// Adds kRows rows, `stride` apart, to the total in order. All are read before one is written, so
/// that the loads wait for memory together.
template <bool kRelu, std::size_t kRows, typename T>
__device__ void add_rows(const T* y, T* dy, std::size_t stride, T& total) {
  T gradients[kRows];
  for (std::size_t row = 0; row < kRows; ++row) gradients[row] = dy[row * stride];
  if (kRelu) {
    for (std::size_t row = 0; row < kRows; ++row) {
      gradients[row] = relu_of(y[row * stride], gradients[row]);
    }
    for (std::size_t row = 0; row < kRows; ++row) dy[row * stride] = gradients[row];
  }
  for (std::size_t row = 0; row < kRows; ++row) add_to(total, gradients[row]);
}

/// sums[run * columns + column] = the sum of a run of kBiasGradientRows rows, from 0 in row order;
/// with kRelu dy is masked on the way. T is float, or float4 for four columns a thread.
template <bool kRelu, typename T>
__global__ void sum_runs_kernel(Piece piece, std::size_t runs, float* sums) {
  constexpr std::size_t kWidth = sizeof(T) / sizeof(float);
  constexpr std::size_t kRowsTogether = 4;
  const std::size_t columns = piece.columns / kWidth;
  const std::size_t row_stride = piece.row_stride / kWidth;
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
       i < runs * columns; i += stride) {
    const std::size_t begin = i / columns * kBiasGradientRows;
    const std::size_t left = piece.rows - begin;
    const std::size_t rows = left < kBiasGradientRows ? left : kBiasGradientRows;
    const std::size_t start = begin * row_stride + i % columns;
    T* dy = reinterpret_cast<T*>(piece.dy) + start;
    const T* y = reinterpret_cast<const T*>(piece.y) + start;
    T total{};
    std::size_t row = 0;
    for (; row + kRowsTogether <= rows; row += kRowsTogether) {
      add_rows<kRelu, kRowsTogether>(y + row * row_stride, dy + row * row_stride, row_stride,
                                     total);
    }
    for (; row < rows; ++row) {
      add_rows<kRelu, 1>(y + row * row_stride, dy + row * row_stride, row_stride, total);
    }
    reinterpret_cast<T*>(sums)[i] = total;
  }
}

/// db[column] = what is there, or 0 at `first`, and the runs' sums in order.
__global__ void add_runs_kernel(const float* sums, std::size_t runs, std::size_t columns,
                                bool first, float* db) {
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t c = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; c < columns;
       c += stride) {
    float total = first ? 0.0F : db[c];
    for (std::size_t run = 0; run < runs; ++run) {
      total = rounded_add(total, sums[run * columns + c]);
    }
    db[c] = total;
  }
}

template <bool kRelu>
void launch_runs(const char* name, cudaStream_t stream, Piece piece, std::size_t runs,
                 float* sums) {
  const bool aligned = split_at_alignment(1, 1, piece.dy, kRelu ? piece.y : piece.dy).groups == 1;
  const bool fours = aligned && piece.columns % 4 == 0 && piece.row_stride % 4 == 0;
  launch(name, fours ? sum_runs_kernel<kRelu, float4> : sum_runs_kernel<kRelu, float>,
         grid_for(runs * piece.columns / (fours ? 4 : 1)), stream, piece, runs, sums);
}

/// Pieces of columns, and of rows whose totals join db one piece after the other.
template <bool kRelu>
void sum_columns(const char* name, cudaStream_t stream, DenseShape shape, const float* y, float* dy,
                 float* db, std::span<float> workspace) {
  const std::size_t most_columns = std::min(shape.n, kColumnsAtOnce);
  if (shape.m == 0) fill(stream, {db, shape.n}, 0.0F);
  if (shape.m == 0 || shape.n == 0) return;
  const std::size_t most_rows = kRunSums / most_columns * kBiasGradientRows;
  for (std::size_t column = 0; column < shape.n; column += most_columns) {
    for (std::size_t row = 0; row < shape.m; row += most_rows) {
      const std::size_t start = row * shape.n + column;
      const Piece piece{.y = kRelu ? y + start : nullptr,
                        .dy = dy + start,
                        .rows = std::min(most_rows, shape.m - row),
                        .columns = std::min(most_columns, shape.n - column),
                        .row_stride = shape.n};
      const std::size_t runs = (piece.rows - 1) / kBiasGradientRows + 1;
      launch_runs<kRelu>(name, stream, piece, runs, workspace.data());
      launch(name, add_runs_kernel, grid_for(piece.columns), stream, workspace.data(), runs,
             piece.columns, row == 0, db + column);
    }
  }
}

}  // namespace

void dense_bias_gradient(cudaStream_t stream, DenseShape shape, std::span<const float> dy,
                         std::span<float> db, std::span<float> workspace) {
  require_matrix({"dense_bias_gradient", "dy"}, dy.size(), shape.m, shape.n);
  require_elements({"dense_bias_gradient", "db"}, db.size(), shape.n);
  require_workspace("dense_bias_gradient", workspace);
  // Without a relu dy is only read.
  sum_columns<false>("dense_bias_gradient", stream, shape, nullptr, const_cast<float*>(dy.data()),
                     db.data(), workspace);
}

void relu_and_bias_gradient(cudaStream_t stream, DenseShape shape, std::span<const float> y,
                            std::span<float> dy, std::span<float> db, std::span<float> workspace) {
  require_matrix({"relu_and_bias_gradient", "y"}, y.size(), shape.m, shape.n);
  require_matrix({"relu_and_bias_gradient", "dy"}, dy.size(), shape.m, shape.n);
  require_elements({"relu_and_bias_gradient", "db"}, db.size(), shape.n);
  require_workspace("relu_and_bias_gradient", workspace);
  sum_columns<true>("relu_and_bias_gradient", stream, shape, y.data(), dy.data(), db.data(),
                    workspace);
}

}  // namespace weir::cuda
