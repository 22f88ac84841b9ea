#include <cstddef>
#include <cstdint>

#include "allocator/base/error.hpp"
#include "kernels/parts/check.hpp"
#include "kernels/sparse/label_lists.hpp"
#include "kernels/sparse/row_tiles_cuda.hpp"
#include "kernels/sparse/softmax_loss_cuda.hpp"
#include "kernels/sparse/softmax_row.hpp"
#include "kernels/sums/sum_tiles_cuda.hpp"
#include "kernels/sums/warp_terms_cuda.hpp"

namespace weir::cuda {
namespace {

/// Of each tile the largest logit and the sum of its exponentials.
struct StatisticsTile {
  const float* z;
  std::size_t classes;
  float* largest;
  float* total;

  __device__ void operator()(const RowTile& tile) const {
    float values[kSumLanes];
    // Minus infinity: never the largest, and its exponential is 0.
    tile.load(z + tile.row * classes + tile.begin, float_of_bits(0xFF800000U), values);
    float best = kLeastLogit;
    WEIR_UNROLL
    for (unsigned k = 0; k < kSumLanes; ++k) best = values[k] > best ? values[k] : best;
    best = largest_of_lanes(best);
    float sum = 0;
    WEIR_UNROLL
    for (unsigned k = 0; k < kSumLanes; ++k) sum += exp_of_negative(rounded_add(values[k], -best));
    sum = fold_lanes(sum);
    if (tile.lane != 0) return;
    largest[tile.index] = best;
    total[tile.index] = sum;
  }
};

/// The rows of a launch, and the results of their tiles.
struct StatisticsRows {
  const float* z;
  const std::uint32_t* starts;
  const std::uint32_t* labels;
  std::size_t classes;
  std::size_t rows;
  std::size_t row_tiles;
  const float* largest;
  const float* total;
};

/// The statistics of each row, one warp a row.
__global__ void statistics_kernel(StatisticsRows of, float* statistics) {
  const unsigned lane = threadIdx.x % kWarpLanes;
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * kBlockWarps;
  for (std::size_t i =
           static_cast<std::size_t>(blockIdx.x) * kBlockWarps + threadIdx.x / kWarpLanes;
       i < of.rows; i += stride) {
    const float* const largest = of.largest + i * of.row_tiles;
    const float* const total = of.total + i * of.row_tiles;
    float best = kLeastLogit;
    for (std::size_t t = lane; t < of.row_tiles; t += kWarpLanes) {
      best = largest[t] > best ? largest[t] : best;
    }
    best = largest_of_lanes(best);
    const float sum = sum_terms_of_warp(of.row_tiles, [=](std::size_t t) {
      return rounded_multiply(total[t], exp_of_negative(rounded_add(largest[t], -best)));
    });
    const float* const row = of.z + i * of.classes;
    const std::uint32_t* const labels = of.labels + of.starts[i];
    const std::size_t classes = of.classes;
    const float at_labels = sum_terms_of_warp(of.starts[i + 1] - of.starts[i], [=](std::size_t l) {
      return labels[l] < classes ? row[labels[l]] : float_of_bits(0x7FC00000U);
    });
    if (lane != 0) continue;
    float* const out = statistics + i * kSoftmaxStatistics;
    out[0] = rounded_add(best, 0.0F);  // of -0 and +0 either may be found
    out[1] = sum;
    out[2] = at_labels;
    out[3] = static_cast<float>(of.starts[i + 1] - of.starts[i]);
  }
}

/// The rows' losses, as terms of their sum.
struct RowLosses {
  const float* statistics;

  __device__ float one(std::size_t i) const {
    return softmax_row_loss(statistics + i * kSoftmaxStatistics);
  }
  __device__ float4 four(std::size_t i) const {
    return float4{one(i), one(i + 1), one(i + 2), one(i + 3)};
  }
};

/// The slopes of a tile. dz may be z: a lane loads all its elements before it writes one.
struct GradientTile {
  const float* z;
  float* dz;
  const std::uint32_t* starts;
  const std::uint32_t* labels;
  const float* statistics;
  std::size_t classes;
  float rows;

  __device__ void operator()(const RowTile& tile) const {
    const std::uint32_t first = starts[tile.row];
    const std::uint32_t count = starts[tile.row + 1] - first;
    const std::uint32_t yes = tile.labelled(labels + first, count);
    const float* const of_row = statistics + tile.row * kSoftmaxStatistics;
    const bool labelled = of_row[3] != 0.0F;
    const SoftmaxSlope slope(of_row, rows);
    const std::size_t start = tile.row * classes + tile.begin;
    float values[kSumLanes];
    tile.load(z + start, 0.0F, values);
    WEIR_UNROLL
    for (unsigned k = 0; k < kSumLanes; ++k) {
      if (tile.place(k) >= tile.count) break;
      const float share = slope.share(values[k]);
      const float own = (yes >> k & 1U) != 0 ? rounded_add(share, -slope.target) : share;
      dz[start + tile.place(k)] = labelled ? own : 0.0F;
    }
  }
};

void require_statistics(const char* name, const SparseLabels& labels,
                        std::span<const float> statistics) {
  require_matrix({name, "statistics"}, statistics.size(), labels.rows(), kSoftmaxStatistics);
}

}  // namespace

void softmax_statistics(cudaStream_t stream, const SparseLabels& labels, std::span<const float> z,
                        std::span<float> statistics, std::span<float> workspace) {
  constexpr const char* kName = "softmax_statistics";
  require_logits(kName, labels, z);
  require_classes(kName, labels.classes);
  require_statistics(kName, labels, statistics);
  require_workspace(kName, workspace);
  const std::size_t classes = labels.classes;
  float* const largest = workspace.data();
  float* const total = largest + kTilesAtOnce;
  for_pieces_of_rows(classes, labels.rows(), [&](std::size_t begin, std::size_t rows) {
    const float* const logits = z.data() + begin * classes;
    launch_row_tiles(kName, stream, StatisticsTile{logits, classes, largest, total}, classes, rows);
    const StatisticsRows of{logits,
                            labels.starts.data() + begin,
                            labels.indices.data(),
                            classes,
                            rows,
                            row_tiles_of(classes),
                            largest,
                            total};
    launch(kName, statistics_kernel, grid_for(rows, kBlockWarps), stream, of,
           statistics.data() + begin * kSoftmaxStatistics);
  });
}

void softmax_loss(cudaStream_t stream, const SparseLabels& labels,
                  std::span<const float> statistics, std::span<float> loss,
                  std::span<float> workspace) {
  if (labels.rows() == 0) throw UsageError("softmax_loss: needs at least one row");
  require_statistics("softmax_loss", labels, statistics);
  require_elements({"softmax_loss", "loss"}, loss.size(), 1);
  require_workspace("softmax_loss", workspace);
  const auto terms_from = [&](std::size_t begin) {
    return RowLosses{statistics.data() + begin * kSoftmaxStatistics};
  };
  sum_of_terms("softmax_loss", stream, terms_from, false, labels.rows(),
               {.divisor = static_cast<float>(labels.mean_rows())}, loss.data(), workspace);
}

void softmax_gradient(cudaStream_t stream, const SparseLabels& labels, std::span<const float> z,
                      std::span<const float> statistics, std::span<float> dz) {
  constexpr const char* kName = "softmax_gradient";
  require_logits(kName, labels, z);
  require_classes(kName, labels.classes);
  require_statistics(kName, labels, statistics);
  require_elements({kName, "dz"}, dz.size(), z.size());
  const GradientTile work{z.data(),
                          dz.data(),
                          labels.starts.data(),
                          labels.indices.data(),
                          statistics.data(),
                          labels.classes,
                          static_cast<float>(labels.mean_rows())};
  launch_row_tiles(kName, stream, work, labels.classes, labels.rows());
}

}  // namespace weir::cuda
