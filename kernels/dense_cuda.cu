#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "kernels/bias_gradient_cut.hpp"
#include "kernels/dense.hpp"
#include "kernels/elementwise/elementwise.hpp"
#include "kernels/parts/check.hpp"
#include "kernels/parts/launch_cuda.hpp"
#include "kernels/parts/same_bits.hpp"
#include "kernels/parts/workspace_cuda.hpp"

namespace weir::cuda {
namespace {

__device__ inline float masked(float output, float gradient) {
  return output > 0.0F ? gradient : 0.0F;
}
__device__ inline float sum_of(float total, float term) { return rounded_add(total, term); }
__device__ inline float4 sum_of(float4 total, float4 term) {
  return each_of_four([](float a, float b) { return rounded_add(a, b); }, total, term);
}
__device__ inline float relu_of(float output, float gradient) { return masked(output, gradient); }
__device__ inline float4 relu_of(float4 output, float4 gradient) {
  return each_of_four([](float a, float b) { return masked(a, b); }, output, gradient);
}

/// act(value + bias). A NaN stays.
template <bool kRelu>
__device__ float activate(float value, float bias) {
  const float sum = rounded_add(value, bias);
  return kRelu && sum < 0.0F ? 0.0F : sum;
}
template <bool kRelu>
__device__ float4 activate(float4 value, float4 bias) {
  return each_of_four([](float a, float b) { return activate<kRelu>(a, b); }, value, bias);
}

/// y = act(y + b), rows of `columns`. Each thread advances its column without a division per step.
/// T is float, or float4 for four columns; `columns` and `count` are in elements of T.
template <bool kRelu, typename T>
__global__ void bias_kernel(const float* b, float* y, std::size_t columns, std::size_t count) {
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  const std::size_t start = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const std::size_t step = stride % columns;
  std::size_t column = start % columns;
  for (std::size_t i = start; i < count; i += stride) {
    T* const element = reinterpret_cast<T*>(y) + i;
    *element = activate<kRelu>(*element, reinterpret_cast<const T*>(b)[column]);
    column += step;
    if (column >= columns) column -= columns;
  }
}

struct ReluBackward {
  static constexpr std::size_t kGroup = 4;
  const float* y;
  float* dy;

  __device__ void one(std::size_t i) const { dy[i] = relu_of(y[i], dy[i]); }
  __device__ void group(std::size_t i) const {
    store_four(dy + i, relu_of(load_four(y + i), load_four(dy + i)));
  }
};

template <bool kRelu>
void launch_bias(cudaStream_t stream, DenseShape shape, const float* b, float* y) {
  // If the first row is aligned and made of whole fours, every row is aligned, and so is b.
  const bool fours = shape.n % 4 == 0 && are_aligned(b, y);
  const std::size_t columns = fours ? shape.n / 4 : shape.n;
  const std::size_t count = columns * shape.m;
  launch("bias_activation", fours ? bias_kernel<kRelu, float4> : bias_kernel<kRelu, float>,
         grid_for(count), stream, b, y, columns, count);
}

constexpr unsigned kTile = kBiasGradientTile;
constexpr unsigned kTilePart = kTile / kBlockThreads;  ///< per thread
static_assert(bias_gradient_width(1) == kBlockThreads, "the widest block has a thread a column");

/// Part of dy: `columns` neighbouring columns of `rows` rows, `row_stride` apart.
struct Piece {
  const float* y;  ///< the layer's output at the same place; only a relu reads it
  float* dy;       ///< only a relu writes it
  std::size_t rows;
  std::size_t columns;
  std::size_t row_stride;
};

/// Adds kRows rows, `stride` apart, to the total in order. Reads all before writing one, so that
/// the loads overlap.
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
  for (std::size_t row = 0; row < kRows; ++row) total = sum_of(total, gradients[row]);
}

/// sums[run * columns + column] = the sum of a run of kBiasGradientRows rows, from 0 in row order;
/// kRelu also masks dy. T is float, or float4 for four columns a thread.
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

/// The sums of all runs of a piece, one row a run.
struct RunSums {
  const float* sums;
  std::size_t runs;
  std::size_t columns;
};

/// Loads this thread's part of the tile that begins with run `begin`: its column of every `step`-th
/// run. Missing elements are 0 and never added. The loads are independent, so they overlap.
__device__ inline void load_part(RunSums all, std::size_t column, std::size_t begin, unsigned step,
                                 float (&part)[kTilePart]) {
  for (unsigned i = 0; i < kTilePart; ++i) {
    const std::size_t run = begin + static_cast<std::size_t>(i) * step;
    const bool there = run < all.runs && column < all.columns;
    part[i] = there ? all.sums[run * all.columns + column] : 0.0F;
  }
}

/// Adds the first `runs` runs of one column, `width` apart in a tile, to the total in order.
__device__ inline float add_tile(const float* tile, unsigned width, std::size_t runs, float total) {
  constexpr std::size_t kTogether = 16;
  std::size_t run = 0;
  for (; run + kTogether <= runs; run += kTogether) {
    float terms[kTogether];
    for (std::size_t i = 0; i < kTogether; ++i) terms[i] = tile[(run + i) * width];
    for (std::size_t i = 0; i < kTogether; ++i) total = rounded_add(total, terms[i]);
  }
  for (; run < runs; ++run) total = rounded_add(total, tile[run * width]);
  return total;
}

/// db[column] = the present value, or 0 at `first`, plus the runs' sums in order. A block handles
/// `width` columns at once, a divisor of kBlockThreads.
///
/// The order forces one addition after the other for each column, so these must not wait for memory
/// too: a whole block loads the next tile while one thread a column adds. A tile's place is reused
/// two tiles later; the barrier in between guarantees that it was read.
__global__ void add_runs_kernel(RunSums all, unsigned width, bool first, float* db) {
  __shared__ float tiles[2 * kTile];
  const unsigned step = kBlockThreads / width;
  const std::size_t tile_runs = kTile / width;
  unsigned place = 0;
  for (std::size_t group = blockIdx.x; group * width < all.columns; group += gridDim.x) {
    const std::size_t column = group * width + threadIdx.x % width;
    const bool adds = threadIdx.x < width && column < all.columns;
    float total = adds && !first ? db[column] : 0.0F;
    float part[kTilePart];
    load_part(all, column, threadIdx.x / width, step, part);
    for (std::size_t begin = 0; begin < all.runs; begin += tile_runs) {
      float* const tile = tiles + place * kTile;
      for (unsigned i = 0; i < kTilePart; ++i) tile[i * kBlockThreads + threadIdx.x] = part[i];
      __syncthreads();
      const std::size_t end = begin + tile_runs;
      if (end < all.runs) load_part(all, column, end + threadIdx.x / width, step, part);
      if (adds) {
        total =
            add_tile(tile + threadIdx.x, width, (end < all.runs ? end : all.runs) - begin, total);
      }
      place = 1 - place;
    }
    if (adds) db[column] = total;
  }
}

template <bool kRelu>
void launch_runs(const char* name, cudaStream_t stream, Piece piece, std::size_t runs,
                 float* sums) {
  const bool aligned = are_aligned(piece.dy, kRelu ? piece.y : piece.dy);
  const bool fours = aligned && piece.columns % 4 == 0 && piece.row_stride % 4 == 0;
  launch(name, fours ? sum_runs_kernel<kRelu, float4> : sum_runs_kernel<kRelu, float>,
         grid_for(runs * piece.columns / (fours ? 4 : 1)), stream, piece, runs, sums);
}

/// Adds piece by piece: the totals of a piece of rows go into db before the next piece's.
template <bool kRelu>
void sum_columns(const char* name, cudaStream_t stream, DenseShape shape, const float* y, float* dy,
                 float* db, std::span<float> workspace) {
  if (shape.m == 0) fill(stream, {db, shape.n}, 0.0F);
  if (shape.m == 0 || shape.n == 0) return;
  const BiasGradientCut cut = cut_bias_gradient(shape, workspace.size());
  for (std::size_t column = 0; column < shape.n; column += cut.columns) {
    for (std::size_t row = 0; row < shape.m; row += cut.rows) {
      const std::size_t start = row * shape.n + column;
      const Piece piece{.y = kRelu ? y + start : nullptr,
                        .dy = dy + start,
                        .rows = std::min(cut.rows, shape.m - row),
                        .columns = std::min(cut.columns, shape.n - column),
                        .row_stride = shape.n};
      const std::size_t runs = bias_gradient_runs(piece.rows);
      launch_runs<kRelu>(name, stream, piece, runs, workspace.data());
      const std::size_t width = bias_gradient_width(runs);
      launch(name, add_runs_kernel, grid_for(piece.columns, width), stream,
             RunSums{workspace.data(), runs, piece.columns}, width, row == 0, db + column);
    }
  }
}

}  // namespace

void bias_activation(cudaStream_t stream, DenseShape shape, std::span<const float> b,
                     std::span<float> y, Activation activation) {
  require_elements({"bias_activation", "b"}, b.size(), shape.n);
  require_matrix({"bias_activation", "y"}, y.size(), shape.m, shape.n);
  if (y.empty()) return;
  const bool relu = activation == Activation::kRelu;
  (relu ? launch_bias<true> : launch_bias<false>)(stream, shape, b.data(), y.data());
}

void relu_backward(cudaStream_t stream, std::span<const float> y, std::span<float> dy) {
  require_elements({"relu_backward", "dy"}, dy.size(), y.size());
  launch_each("relu_backward", stream, ReluBackward{y.data(), dy.data()}, y.size(), y.data(),
              dy.data());
}

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
