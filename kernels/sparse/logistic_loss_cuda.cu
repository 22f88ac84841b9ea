#include <cstddef>
#include <cstdint>

#include "kernels/parts/check.hpp"
#include "kernels/sparse/label_lists.hpp"
#include "kernels/sparse/logistic_loss_cuda.hpp"
#include "kernels/sparse/row_tiles_cuda.hpp"
#include "kernels/sparse/softplus.hpp"
#include "kernels/sums/row_sums_cuda.hpp"
#include "kernels/sums/warp_terms_cuda.hpp"

namespace weir::cuda {
namespace {

/// sums[t] = the sum of tile t's terms, and dz the slopes if kGradient. dz may be z: a lane loads
/// all its elements before it writes one.
template <bool kGradient>
struct LogisticTile {
  const float* z;
  float* dz;
  const std::uint32_t* starts;
  const std::uint32_t* labels;
  float* sums;
  std::size_t classes;
  float part;  ///< one by the number of rows

  __device__ void operator()(const RowTile& tile) const {
    const std::uint32_t first = starts[tile.row];
    const std::uint32_t yes = tile.labelled(labels + first, starts[tile.row + 1] - first);
    const std::size_t start = tile.row * classes + tile.begin;
    float values[kSumLanes];
    tile.load(z + start, 0.0F, values);
    float sum = 0;
    WEIR_UNROLL
    for (unsigned k = 0; k < kSumLanes; ++k) {
      if (tile.place(k) >= tile.count) break;
      const bool label = (yes >> k & 1U) != 0;
      const Softplus term = softplus(label ? -values[k] : values[k]);
      sum += term.value;
      if (kGradient) {
        dz[start + tile.place(k)] = rounded_multiply(label ? -term.slope : term.slope, part);
      }
    }
    sum = fold_lanes(sum);
    if (tile.lane == 0) sums[tile.index] = sum;
  }
};

/// terms[i] = the sum of the tiles of row i, one warp for each row.
__global__ void add_row_tiles_kernel(const float* sums, std::size_t row_tiles, std::size_t rows,
                                     float* terms) {
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * kBlockWarps;
  for (std::size_t i =
           static_cast<std::size_t>(blockIdx.x) * kBlockWarps + threadIdx.x / kWarpLanes;
       i < rows; i += stride) {
    const float* const own = sums + i * row_tiles;
    const float total = sum_terms_of_warp(row_tiles, [own](std::size_t t) { return own[t]; });
    if (threadIdx.x % kWarpLanes == 0) terms[i] = total;
  }
}

template <bool kGradient>
void enqueue(const char* name, cudaStream_t stream, const SparseLabels& labels, const float* z,
             float* dz, std::span<float> loss, std::span<float> workspace) {
  const std::size_t classes = labels.classes;
  const auto all_rows = static_cast<float>(labels.mean_rows());
  float* const sums = workspace.data();
  const auto enqueue_terms = [&](std::size_t first, std::size_t rows, float* terms) {
    for_pieces_of_rows(classes, rows, [&](std::size_t begin, std::size_t count) {
      const std::size_t start = (first + begin) * classes;
      const LogisticTile<kGradient> work{z + start,
                                         kGradient ? dz + start : nullptr,
                                         labels.starts.data() + first + begin,
                                         labels.indices.data(),
                                         sums,
                                         classes,
                                         1.0F / all_rows};
      launch_row_tiles(name, stream, work, classes, count);
      launch(name, add_row_tiles_kernel, grid_for(count, kBlockWarps), stream, sums,
             row_tiles_of(classes), count, terms + begin);
    });
  };
  sum_of_rows<kRowTermsAtOnce>(name, stream, labels.rows(), enqueue_terms, {.divisor = all_rows},
                               loss.data(), workspace.subspan(2 * kTilesAtOnce));
}

void require_sizes(const char* name, const SparseLabels& labels, std::span<const float> z,
                   std::span<float> loss, std::span<float> workspace) {
  require_logits(name, labels, z);
  require_classes(name, labels.classes);
  require_elements({name, "loss"}, loss.size(), 1);
  require_workspace(name, workspace);
}

}  // namespace

void logistic_loss(cudaStream_t stream, const SparseLabels& labels, std::span<const float> z,
                   std::span<float> loss, std::span<float> workspace) {
  require_sizes("logistic_loss", labels, z, loss, workspace);
  enqueue<false>("logistic_loss", stream, labels, z.data(), nullptr, loss, workspace);
}

void logistic_loss_and_gradient(cudaStream_t stream, const SparseLabels& labels,
                                std::span<const float> z, std::span<float> loss,
                                std::span<float> dz, std::span<float> workspace) {
  require_sizes("logistic_loss_and_gradient", labels, z, loss, workspace);
  require_elements({"logistic_loss_and_gradient", "dz"}, dz.size(), z.size());
  enqueue<true>("logistic_loss_and_gradient", stream, labels, z.data(), dz.data(), loss, workspace);
}

}  // namespace weir::cuda
