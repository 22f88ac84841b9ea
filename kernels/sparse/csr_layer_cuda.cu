#include <cstddef>
#include <cstdint>

#include "kernels/parts/check.hpp"
#include "kernels/parts/each_cuda.hpp"
#include "kernels/parts/normal.hpp"
#include "kernels/sparse/csr_layer_cuda.hpp"
#include "kernels/sparse/weighted_rows_cuda.hpp"

namespace weir::cuda {
namespace {

/// Rows that a thread loads at once. A row of X has hundreds of entries, and few threads share it.
constexpr std::size_t kForwardTogether = 8;
/// Most touched columns have one or two entries.
constexpr std::size_t kGradientTogether = 2;
/// Threads of a block of the forward pass: small, so that a batch's few threads reach every
/// multiprocessor.
constexpr unsigned kForwardThreads = 64;

/// Sparse rows or columns: line i has the entries starts[i] ... starts[i + 1] - 1.
struct Lines {
  const std::uint32_t* starts;
  const std::uint32_t* indices;
  const float* values;
  std::size_t count;

  /// The sum of line i over the rows of a matrix. `matrix` points at the column.
  template <std::size_t kTogether, typename T>
  __device__ T sum(std::size_t i, const T* matrix, std::size_t stride) const {
    const std::size_t begin = starts[i];
    return sum_weighted_rows<kTogether>(indices + begin, values + begin, starts[i + 1] - begin,
                                        matrix, stride);
  }
};

/// A thread's elements of a matrix of `columns` columns, a grid apart. One division at the start
/// and none a step.
struct Walk {
  std::size_t columns;
  std::size_t row;
  std::size_t column;
  std::size_t row_step;
  std::size_t column_step;

  __device__ explicit Walk(std::size_t width) : columns(width) {
    const std::size_t start = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
    row = start / columns;
    column = start % columns;
    row_step = stride / columns;
    column_step = stride % columns;
  }
  __device__ void advance() {
    row += row_step;
    column += column_step;
    if (column < columns) return;
    column -= columns;
    ++row;
  }
};

/// act(value + bias). A NaN stays.
template <bool kRelu>
__device__ float activate(float value, float bias) {
  const float sum = rounded_add(value, bias);
  return kRelu && sum < 0.0F ? 0.0F : sum;
}
template <bool kRelu>
__device__ float4 activate(float4 value, float4 bias) {
  return float4{activate<kRelu>(value.x, bias.x), activate<kRelu>(value.y, bias.y),
                activate<kRelu>(value.z, bias.z), activate<kRelu>(value.w, bias.w)};
}

/// y = act(X W + b). T is float, or float4 for four columns a thread; `columns` is in elements of
/// T.
template <bool kRelu, typename T>
__global__ void __launch_bounds__(kForwardThreads)
    forward_kernel(Lines x, const float* w, const float* b, float* y, std::size_t columns) {
  for (Walk at(columns); at.row < x.count; at.advance()) {
    const T total =
        x.sum<kForwardTogether>(at.row, reinterpret_cast<const T*>(w) + at.column, columns);
    reinterpret_cast<T*>(y)[at.row * columns + at.column] =
        activate<kRelu>(total, reinterpret_cast<const T*>(b)[at.column]);
  }
}

/// dw = the sums of the touched columns.
template <typename T>
__global__ void weight_gradient_kernel(Lines x, const float* dy, float* dw, std::size_t columns) {
  for (Walk at(columns); at.row < x.count; at.advance()) {
    reinterpret_cast<T*>(dw)[at.row * columns + at.column] =
        x.sum<kGradientTogether>(at.row, reinterpret_cast<const T*>(dy) + at.column, columns);
  }
}

/// Whether rows of n elements from all of `data` on may be moved sixteen bytes at a time.
template <typename... T>
bool in_fours(std::size_t n, const T*... data) {
  return n % 4 == 0 && split_at_alignment(1, 1, data...).groups == 1;
}

template <bool kRelu>
void launch_forward(cudaStream_t stream, Lines x, const float* w, std::span<const float> b,
                    float* y) {
  const bool fours = in_fours(b.size(), w, b.data(), y);
  const std::size_t columns = fours ? b.size() / 4 : b.size();
  const Grid grid{.blocks = grid_for(x.count * columns, kForwardThreads).blocks,
                  .threads = kForwardThreads};
  launch("csr_forward", fours ? forward_kernel<kRelu, float4> : forward_kernel<kRelu, float>, grid,
         stream, x, w, b.data(), y, columns);
}

}  // namespace

void csr_forward(cudaStream_t stream, const CsrRows& x, std::span<const float> w,
                 std::span<const float> b, std::span<float> y, Activation activation) {
  require_elements({"csr_forward", "values"}, x.values.size(), x.indices.size());
  require_matrix({"csr_forward", "w"}, w.size(), x.columns, b.size());
  require_matrix({"csr_forward", "y"}, y.size(), x.rows(), b.size());
  if (y.empty()) return;
  const Lines lines{x.starts.data(), x.indices.data(), x.values.data(), x.rows()};
  const bool relu = activation == Activation::kRelu;
  (relu ? launch_forward<true> : launch_forward<false>)(stream, lines, w.data(), b, y.data());
}

void csr_weight_gradient(cudaStream_t stream, DenseShape shape, const CsrColumns& x,
                         std::span<const float> dy, std::span<float> dw) {
  require_elements({"csr_weight_gradient", "values"}, x.values.size(), x.rows.size());
  require_elements({"csr_weight_gradient", "starts"}, x.starts.size(), x.touched.size() + 1);
  require_matrix({"csr_weight_gradient", "dy"}, dy.size(), shape.m, shape.n);
  require_matrix({"csr_weight_gradient", "dw"}, dw.size(), x.touched.size(), shape.n);
  if (dw.empty()) return;
  const bool fours = in_fours(shape.n, dy.data(), dw.data());
  const std::size_t columns = fours ? shape.n / 4 : shape.n;
  launch("csr_weight_gradient",
         fours ? weight_gradient_kernel<float4> : weight_gradient_kernel<float>,
         grid_for(x.touched.size() * columns), stream,
         Lines{x.starts.data(), x.rows.data(), x.values.data(), x.touched.size()}, dy.data(),
         dw.data(), columns);
}

}  // namespace weir::cuda
