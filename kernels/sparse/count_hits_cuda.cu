#include <cstddef>
#include <cstdint>

#include "kernels/parts/check.hpp"
#include "kernels/parts/normal.hpp"
#include "kernels/sparse/count_hits_cuda.hpp"
#include "kernels/sparse/label_lists.hpp"
#include "kernels/sparse/row_tiles_cuda.hpp"
#include "kernels/sums/row_sums_cuda.hpp"

namespace weir::cuda {
namespace {

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

}  // namespace

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

}  // namespace weir::cuda
