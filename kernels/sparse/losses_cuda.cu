#include <cstddef>
#include <cstdint>

#include "kernels/parts/check.hpp"
#include "kernels/parts/launch_cuda.hpp"
#include "kernels/parts/same_bits.hpp"
#include "kernels/sparse/losses.hpp"
#include "kernels/sparse/row_arithmetic.hpp"
#include "kernels/sparse/row_tiles_cuda.hpp"
#include "kernels/sums/sums_cuda.hpp"

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

/// One thread a row: there are few rows and parts.
__global__ void merge_statistics_kernel(const float* data, std::size_t parts, std::size_t floats,
                                        float* statistics) {
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
       i < floats / kSoftmaxStatistics; i += stride) {
    const std::size_t at = i * kSoftmaxStatistics;
    merge_softmax_row(data + at, parts, floats, statistics + at);
  }
}

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
void enqueue_logistic(const char* name, cudaStream_t stream, const SparseLabels& labels,
                      const float* z, float* dz, std::span<float> loss,
                      std::span<float> workspace) {
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

void require_logistic(const char* name, const SparseLabels& labels, std::span<const float> z,
                      std::span<float> loss, std::span<float> workspace) {
  require_logits(name, labels, z);
  require_classes(name, labels.classes);
  require_elements({name, "loss"}, loss.size(), 1);
  require_workspace(name, workspace);
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
  require_that("softmax_loss", labels.rows() > 0, "needs at least one row");
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

void merge_softmax_statistics(cudaStream_t stream, std::span<const float> parts,
                              std::span<float> statistics) {
  constexpr const char* kName = "merge_softmax_statistics";
  const std::size_t floats = statistics.size();
  require_parts(kName, parts, floats);
  const std::size_t rows = floats / kSoftmaxStatistics;
  require_matrix({kName, "statistics"}, floats, rows, kSoftmaxStatistics);
  launch(kName, merge_statistics_kernel, grid_for(rows), stream, parts.data(),
         parts.size() / floats, floats, statistics.data());
}

void logistic_loss(cudaStream_t stream, const SparseLabels& labels, std::span<const float> z,
                   std::span<float> loss, std::span<float> workspace) {
  require_logistic("logistic_loss", labels, z, loss, workspace);
  enqueue_logistic<false>("logistic_loss", stream, labels, z.data(), nullptr, loss, workspace);
}

void logistic_loss_and_gradient(cudaStream_t stream, const SparseLabels& labels,
                                std::span<const float> z, std::span<float> loss,
                                std::span<float> dz, std::span<float> workspace) {
  require_logistic("logistic_loss_and_gradient", labels, z, loss, workspace);
  require_elements({"logistic_loss_and_gradient", "dz"}, dz.size(), z.size());
  enqueue_logistic<true>("logistic_loss_and_gradient", stream, labels, z.data(), dz.data(), loss,
                         workspace);
}

}  // namespace weir::cuda
