#include "kernels/sparse/softmax_loss.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "allocator/base/error.hpp"
#include "kernels/parts/check.hpp"
#include "kernels/parts/vectors.hpp"
#include "kernels/sparse/label_lists.hpp"
#include "kernels/sparse/softmax_row.hpp"
#include "kernels/sums/sum_terms.hpp"

namespace weir {
namespace {

/// Skips NaN: it reappears in the terms. Several at once, since the order does not matter.
float largest_in(std::span<const float> z) {
  std::array<float, kSumLanes> lanes;
  lanes.fill(kLeastLogit);
  std::size_t j = 0;
  for (; z.size() - j >= kSumLanes; j += kSumLanes) {
    for (std::size_t l = 0; l < kSumLanes; ++l)
      lanes[l] = z[j + l] > lanes[l] ? z[j + l] : lanes[l];
  }
  for (; j < z.size(); ++j) lanes[0] = z[j] > lanes[0] ? z[j] : lanes[0];
  return *std::ranges::max_element(lanes);
}

/// The tiles of a row: the largest logit of each, and the sum of its exponentials.
struct RowTiles {
  std::vector<float> largest;
  std::vector<float> total;

  explicit RowTiles(std::size_t classes)
      : largest((classes - 1) / kSumTile + 1), total(largest.size()) {}

  void compute(std::span<const float> z) {
    for (std::size_t t = 0; t < largest.size(); ++t) {
      const std::size_t begin = t * kSumTile;
      const std::span<const float> tile = z.subspan(begin, std::min(kSumTile, z.size() - begin));
      const float most = largest_in(tile);
      largest[t] = most;
      total[t] = sum_tile(0, tile.size(), [tile, most](std::size_t j) noexcept {
        return exp_of_negative(tile[j] - most);
      });
    }
  }
};

}  // namespace

void softmax_statistics(const SparseLabels& labels, std::span<const float> z,
                        std::span<float> statistics) {
  require_labels("softmax_statistics", labels, z);
  require_matrix({"softmax_statistics", "statistics"}, statistics.size(), labels.rows(),
                 kSoftmaxStatistics);
  RowTiles tiles(labels.classes);
  for (std::size_t i = 0; i < labels.rows(); ++i) {
    const std::span<const float> row = z.subspan(i * labels.classes, labels.classes);
    with_vectors([&tiles, row] { tiles.compute(row); });
    const float largest = largest_in(tiles.largest);
    const std::span<const std::uint32_t> own = labels_of(labels, i);
    float* const out = statistics.data() + i * kSoftmaxStatistics;
    out[0] = largest + 0.0F;  // of -0 and +0 either may be found
    out[1] = sum_terms(0, tiles.total.size(), [&tiles, largest](std::size_t t) noexcept {
      return tiles.total[t] * exp_of_negative(tiles.largest[t] - largest);
    });
    out[2] = sum_terms(0, own.size(), [own, row](std::size_t l) noexcept { return row[own[l]]; });
    out[3] = static_cast<float>(own.size());
  }
}

void softmax_loss(const SparseLabels& labels, std::span<const float> statistics,
                  std::span<float> loss) {
  const std::size_t rows = labels.rows();
  if (rows == 0) throw UsageError("softmax_loss: needs at least one row");
  require_matrix({"softmax_loss", "statistics"}, statistics.size(), rows, kSoftmaxStatistics);
  require_elements({"softmax_loss", "loss"}, loss.size(), 1);
  const auto term = [=](std::size_t i) {
    return softmax_row_loss(statistics.data() + i * kSoftmaxStatistics);
  };
  loss[0] = sum_terms(0, rows, term) / static_cast<float>(labels.mean_rows());
}

void softmax_gradient(const SparseLabels& labels, std::span<const float> z,
                      std::span<const float> statistics, std::span<float> dz) {
  require_labels("softmax_gradient", labels, z);
  require_matrix({"softmax_gradient", "statistics"}, statistics.size(), labels.rows(),
                 kSoftmaxStatistics);
  require_elements({"softmax_gradient", "dz"}, dz.size(), z.size());
  const auto rows = static_cast<float>(labels.mean_rows());
  std::array<float, kSumTile> shares;  // apart from z, so that several are computed at once
  for (std::size_t i = 0; i < labels.rows(); ++i) {
    const std::span<float> out = dz.subspan(i * labels.classes, labels.classes);
    const std::span<const std::uint32_t> own = labels_of(labels, i);
    const float* const of_row = statistics.data() + i * kSoftmaxStatistics;
    if (of_row[3] == 0.0F) {
      std::ranges::fill(out, 0.0F);
      continue;
    }
    const SoftmaxSlope slope(of_row, rows);
    with_vectors([&shares, slope, row = z.data() + i * labels.classes, out] {
      for (std::size_t begin = 0; begin < out.size(); begin += kSumTile) {
        const std::size_t count = std::min(kSumTile, out.size() - begin);
        const float* const tile = row + begin;
        for (std::size_t j = 0; j < count; ++j) shares[j] = slope.share(tile[j]);
        std::copy_n(shares.begin(), count, out.begin() + static_cast<std::ptrdiff_t>(begin));
      }
    });
    for (const std::uint32_t label : own) out[label] -= slope.target;
  }
}

}  // namespace weir
