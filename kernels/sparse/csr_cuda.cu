// A layer whose input is sparse, and the hits of sparse labels.

#include <cstddef>
#include <cstdint>

#include "kernels/parts/check.hpp"
#include "kernels/parts/launch_cuda.hpp"
#include "kernels/parts/same_bits.hpp"
#include "kernels/sparse/csr_layer.hpp"
#include "kernels/sparse/losses.hpp"
#include "kernels/sparse/row_arithmetic.hpp"
#include "kernels/sparse/row_tiles_cuda.hpp"
#include "kernels/sparse/weighted_rows_cuda.hpp"
#include "kernels/sums/sums_cuda.hpp"

namespace weir::cuda {
namespace {

/// Rows that a thread loads at once. A row of X has hundreds of entries, and few threads share it.
constexpr std::size_t kForwardTogether = 8;
/// Threads of a block of the forward pass: small, so that a batch's few threads reach every
/// multiprocessor.
constexpr unsigned kForwardThreads = 64;

/// Sparse rows: row i has the entries starts[i] ... starts[i + 1] - 1.
struct Rows {
  const std::uint32_t* starts;
  const std::uint32_t* indices;
  const float* values;
  std::size_t count;

  /// The sum of row i over the rows of a matrix. `matrix` points at the column.
  template <typename T>
  __device__ T sum(std::size_t i, const T* matrix, std::size_t stride) const {
    const std::size_t begin = starts[i];
    return sum_weighted_rows<kForwardTogether>(indices + begin, values + begin,
                                               starts[i + 1] - begin, matrix, stride);
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
__device__ float activate_sum(float value, float bias) {
  const float sum = rounded_add(value, bias);
  return kRelu && sum < 0.0F ? 0.0F : sum;
}
template <bool kRelu>
__device__ float4 activate_sum(float4 value, float4 bias) {
  return each_of_four([](float a, float b) { return activate_sum<kRelu>(a, b); }, value, bias);
}

/// y = act(X W + b). T is float, or float4 for four columns a thread; `columns` is in elements of
/// T.
template <bool kRelu, typename T>
__global__ void __launch_bounds__(kForwardThreads)
    forward_kernel(Rows x, const float* w, const float* b, float* y, std::size_t columns) {
  for (Walk at(columns); at.row < x.count; at.advance()) {
    const T total = x.sum(at.row, reinterpret_cast<const T*>(w) + at.column, columns);
    reinterpret_cast<T*>(y)[at.row * columns + at.column] =
        activate_sum<kRelu>(total, reinterpret_cast<const T*>(b)[at.column]);
  }
}

template <bool kRelu>
void launch_forward(cudaStream_t stream, Rows x, const float* w, std::span<const float> b,
                    float* y) {
  const bool fours = b.size() % 4 == 0 && are_aligned(w, b.data(), y);
  const std::size_t columns = fours ? b.size() / 4 : b.size();
  const Grid grid{.blocks = grid_for(x.count * columns, kForwardThreads).blocks,
                  .threads = kForwardThreads};
  launch("csr_forward", fours ? forward_kernel<kRelu, float4> : forward_kernel<kRelu, float>, grid,
         stream, x, w, b.data(), y, columns);
}

/// The largest logit of some, and the first class that has it.
struct Winner {
  float value = float_of_bits(0xFF800000U);  // minus infinity, as every logit may be
  std::uint32_t at = 0xFFFFFFFFU;            // none yet: any class of the same size comes first
  bool nan = false;                          // whether one of the logits is NaN

  __device__ void meet(float other, std::uint32_t there) {
    if (other != other) nan = true;
    if (other > value || (other == value && there < at)) {
      value = other;
      at = there;
    }
  }
  /// The winner of all lanes, for each lane.
  __device__ void meet_lanes() {
    for (unsigned half = kWarpLanes / 2; half > 0; half /= 2) {
      const float other = __shfl_xor_sync(kAllLanes, value, static_cast<int>(half));
      const std::uint32_t there = __shfl_xor_sync(kAllLanes, at, static_cast<int>(half));
      meet(other, there);
    }
    nan = __any_sync(kAllLanes, nan ? 1 : 0) != 0;
  }
};

/// The winner of each tile. The value of one with a NaN is NaN.
struct WinnerTile {
  const float* z;
  std::size_t classes;
  float* values;
  std::uint32_t* places;

  __device__ void operator()(const RowTile& tile) const {
    float logits[kSumLanes];
    tile.load(z + tile.row * classes + tile.begin, 0.0F, logits);
    Winner best;
    WEIR_UNROLL
    for (unsigned k = 0; k < kSumLanes; ++k) {
      if (tile.place(k) >= tile.count) break;
      best.meet(logits[k], static_cast<std::uint32_t>(tile.begin) + tile.place(k));
    }
    best.meet_lanes();
    if (tile.lane != 0) return;
    values[tile.index] = best.nan ? float_of_bits(0x7FC00000U) : best.value;
    places[tile.index] = best.at;
  }
};

/// out[i] = 1 if row i's winner is one of its labels, otherwise 0; with kTops also its value,
/// before that. One warp a row.
template <bool kTops>
__global__ void hits_kernel(const float* values, const std::uint32_t* places, std::size_t row_tiles,
                            std::size_t rows, const std::uint32_t* starts,
                            const std::uint32_t* labels, float* out) {
  const unsigned lane = threadIdx.x % kWarpLanes;
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * kBlockWarps;
  for (std::size_t i =
           static_cast<std::size_t>(blockIdx.x) * kBlockWarps + threadIdx.x / kWarpLanes;
       i < rows; i += stride) {
    Winner best;
    for (std::size_t t = lane; t < row_tiles; t += kWarpLanes) {
      best.meet(values[i * row_tiles + t], places[i * row_tiles + t]);
    }
    best.meet_lanes();
    int hit = 0;
    for (std::size_t l = starts[i] + lane; l < starts[i + 1]; l += kWarpLanes) {
      if (labels[l] == best.at) hit = 1;
    }
    hit = __any_sync(kAllLanes, hit);
    if (lane != 0) continue;
    const float found = hit != 0 && !best.nan ? 1.0F : 0.0F;
    if (kTops) {
      // + 0 because the host finds either of -0 and +0.
      out[i * kTopLogit] = best.nan ? float_of_bits(0x7FC00000U) : rounded_add(best.value, 0.0F);
      out[i * kTopLogit + 1] = found;
    } else {
      out[i] = found;
    }
  }
}

/// Enqueues hits_kernel for `rows` rows from `first` on, in pieces whose tiles fit the workspace.
template <bool kTops>
void enqueue_hits(const char* name, cudaStream_t stream, const SparseLabels& labels,
                  std::span<const float> z, std::size_t first, std::size_t rows, float* out,
                  std::span<float> workspace) {
  const std::size_t classes = labels.classes;
  float* const values = workspace.data();
  auto* const places = reinterpret_cast<std::uint32_t*>(values + kTilesAtOnce);
  for_pieces_of_rows(classes, rows, [&](std::size_t begin, std::size_t count) {
    launch_row_tiles(name, stream,
                     WinnerTile{z.data() + (first + begin) * classes, classes, values, places},
                     classes, count);
    launch(name, hits_kernel<kTops>, grid_for(count, kBlockWarps), stream, values, places,
           row_tiles_of(classes), count, labels.starts.data() + first + begin,
           labels.indices.data(), out + begin * (kTops ? kTopLogit : 1));
  });
}

/// terms[i] = 1 if row i is a hit, otherwise 0.
__global__ void merge_hits_kernel(const float* tops, std::size_t parts, std::size_t floats,
                                  std::size_t rows, float* terms) {
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < rows;
       i += stride) {
    terms[i] = merge_hit(tops + i * kTopLogit, parts, floats);
  }
}

}  // namespace

void csr_forward(cudaStream_t stream, const CsrRows& x, std::span<const float> w,
                 std::span<const float> b, std::span<float> y, Activation activation) {
  require_forward(x, w, b, y);
  if (y.empty()) return;
  const Rows rows{x.starts.data(), x.indices.data(), x.values.data(), x.rows()};
  const bool relu = activation == Activation::kRelu;
  (relu ? launch_forward<true> : launch_forward<false>)(stream, rows, w.data(), b, y.data());
}

void count_hits(cudaStream_t stream, const SparseLabels& labels, std::span<const float> z,
                std::span<float> hits, std::span<float> workspace) {
  constexpr const char* kName = "count_hits";
  require_logits(kName, labels, z);
  require_classes(kName, labels.classes);
  require_elements({kName, "hits"}, hits.size(), 1);
  require_workspace(kName, workspace);
  const auto enqueue_terms = [&](std::size_t first, std::size_t rows, float* terms) {
    enqueue_hits<false>(kName, stream, labels, z, first, rows, terms, workspace);
  };
  sum_of_rows<kRowTermsAtOnce>(kName, stream, labels.rows(), enqueue_terms, {}, hits.data(),
                               workspace.subspan(2 * kTilesAtOnce));
}

void top_logits(cudaStream_t stream, const SparseLabels& labels, std::span<const float> z,
                std::span<float> tops, std::span<float> workspace) {
  constexpr const char* kName = "top_logits";
  require_logits(kName, labels, z);
  require_classes(kName, labels.classes);
  require_matrix({kName, "tops"}, tops.size(), labels.rows(), kTopLogit);
  require_workspace(kName, workspace);
  enqueue_hits<true>(kName, stream, labels, z, 0, labels.rows(), tops.data(), workspace);
}

void merge_hits(cudaStream_t stream, std::span<const float> parts, std::size_t rows,
                std::span<float> hits, std::span<float> workspace) {
  constexpr const char* kName = "merge_hits";
  const std::size_t floats = rows * kTopLogit;
  require_parts(kName, parts, floats);
  require_elements({kName, "hits"}, hits.size(), 1);
  require_workspace(kName, workspace);
  const auto enqueue_terms = [&](std::size_t first, std::size_t count, float* terms) {
    launch(kName, merge_hits_kernel, grid_for(count), stream, parts.data() + first * kTopLogit,
           parts.size() / floats, floats, count, terms);
  };
  sum_of_rows<kRowTermsAtOnce>(kName, stream, rows, enqueue_terms, {}, hits.data(), workspace);
}

}  // namespace weir::cuda
