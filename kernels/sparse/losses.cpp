#include "kernels/sparse/losses.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "allocator/base/error.hpp"
#include "kernels/parts/check.hpp"
#include "kernels/parts/same_bits.hpp"
#include "kernels/parts/vectors.hpp"
#include "kernels/sparse/row_arithmetic.hpp"
#include "kernels/sums/reduce.hpp"

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

using LabelList = std::span<const std::uint32_t>;

/// The terms and the slopes of up to kSumTile classes of a row. Apart from z and dz, which may be
/// the same memory, so that the compiler may compute several at once.
struct LogisticTile {
  std::array<float, kSumTile> values;
  std::array<float, kSumTile> slopes;

  /// `labels` are those from class `begin` on; returns the rest of them, beyond the tile.
  LabelList compute(std::span<const float> z, std::size_t begin, LabelList labels) {
    for (std::size_t j = 0; j < z.size(); ++j) {
      const Softplus no = softplus(z[j]);
      values[j] = no.value;
      slopes[j] = no.slope;
    }
    for (; !labels.empty() && labels[0] < begin + z.size(); labels = labels.subspan(1)) {
      const std::size_t j = labels[0] - begin;
      const Softplus yes = softplus(-z[j]);
      values[j] = yes.value;
      slopes[j] = -yes.slope;
    }
    return labels;
  }
  [[nodiscard]] float sum(std::size_t count) const {
    return sum_tile(0, count, [this](std::size_t j) noexcept { return values[j]; });
  }
};

/// dz is empty, or the gradient.
void run_logistic(const char* function, const SparseLabels& labels, std::span<const float> z,
                  std::span<float> loss, std::span<float> dz) {
  require_labels(function, labels, z);
  require_elements({function, "loss"}, loss.size(), 1);
  const std::size_t rows = labels.rows();
  const auto mean_rows = static_cast<float>(labels.mean_rows());
  const float part = 1.0F / mean_rows;
  std::vector<float> sums((labels.classes - 1) / kSumTile + 1);
  LogisticTile tile{};
  const auto row_loss = [&](std::size_t i) {
    LabelList left = labels_of(labels, i);
    for (std::size_t begin = 0; begin < labels.classes; begin += kSumTile) {
      const std::size_t count = std::min(kSumTile, labels.classes - begin);
      const std::size_t at = i * labels.classes + begin;
      left = tile.compute(z.subspan(at, count), begin, left);
      sums[begin / kSumTile] = tile.sum(count);
      if (dz.empty()) continue;
      for (std::size_t j = 0; j < count; ++j) dz[at + j] = tile.slopes[j] * part;
    }
    return sum_terms(0, sums.size(), [&sums](std::size_t t) noexcept { return sums[t]; });
  };
  loss[0] = sum_terms(0, rows, row_loss) / mean_rows;
}

/// Several at once.
constexpr std::size_t kLanes = 32;

/// Returns the largest of z, or nothing if one is NaN.
std::optional<float> largest_number(std::span<const float> z) {
  std::array<float, kLanes> most;
  std::array<std::uint32_t, kLanes> nan{};
  most.fill(z.front());
  const auto look = [&](std::size_t lane, float value) {
    most[lane] = value > most[lane] ? value : most[lane];
    nan[lane] |= value != value ? 1U : 0U;
  };
  with_vectors([&, data = z.data(), size = z.size()] {
    std::size_t j = 0;
    for (; size - j >= kLanes; j += kLanes) {
      for (std::size_t l = 0; l < kLanes; ++l) look(l, data[j + l]);
    }
    for (; j < size; ++j) look(0, data[j]);
  });
  if (std::ranges::find(nan, 1U) != nan.end()) return std::nullopt;
  return *std::ranges::max_element(most);
}

struct Top {
  float value = std::numeric_limits<float>::quiet_NaN();
  bool hit = false;
};

/// Whether the first logit of this size is a label's.
bool is_label(float largest, std::span<const float> z, std::span<const std::uint32_t> labels) {
  std::size_t first = z.size();
  for (const std::uint32_t label : labels) {
    if (z[label] == largest) first = std::min<std::size_t>(first, label);
  }
  if (first == z.size()) return false;
  const std::span<const float> before = z.first(first);
  return std::ranges::find(before, largest) == before.end();
}

Top top_of_row(const SparseLabels& labels, std::span<const float> z, std::size_t i) {
  const std::span<const float> row = z.subspan(i * labels.classes, labels.classes);
  const std::optional<float> largest = largest_number(row);
  if (!largest) return {};
  // Of -0 and +0 either may be found.
  return {*largest + 0.0F, is_label(*largest, row, labels_of(labels, i))};
}

}  // namespace

void require_logits(const char* function, const SparseLabels& labels, std::span<const float> z) {
  require_that(function, labels.rows() > 0 && labels.classes > 0,
               "needs at least one row and one class");
  require_matrix({function, "z"}, z.size(), labels.rows(), labels.classes);
}

void require_labels(const char* function, const SparseLabels& labels, std::span<const float> z) {
  require_logits(function, labels, z);
  std::size_t before = 0;
  for (const std::size_t start : labels.starts) {
    const bool ordered = start >= before && start <= labels.indices.size();
    if (!ordered) throw UsageError(std::string(function) + ": the labels' starts do not ascend");
    before = start;
  }
  // The labels of rows after a part of a batch are there too.
  if (labels.batch_rows == 0) require_elements({function, "labels"}, labels.indices.size(), before);
  for (std::size_t l = 0; l < labels.indices.size(); ++l) {
    if (labels.indices[l] < labels.classes) continue;
    throw UsageError(std::string(function) + ": label " + std::to_string(l) + " is " +
                     std::to_string(labels.indices[l]) + ", expected a number below " +
                     std::to_string(labels.classes));
  }
}

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
  require_that("softmax_loss", rows > 0, "needs at least one row");
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

void logistic_loss(const SparseLabels& labels, std::span<const float> z, std::span<float> loss) {
  run_logistic("logistic_loss", labels, z, loss, {});
}

void logistic_loss_and_gradient(const SparseLabels& labels, std::span<const float> z,
                                std::span<float> loss, std::span<float> dz) {
  require_elements({"logistic_loss_and_gradient", "dz"}, dz.size(), z.size());
  run_logistic("logistic_loss_and_gradient", labels, z, loss, dz);
}

void count_hits(const SparseLabels& labels, std::span<const float> z, std::span<float> hits) {
  require_labels("count_hits", labels, z);
  require_elements({"count_hits", "hits"}, hits.size(), 1);
  std::size_t count = 0;
  for (std::size_t i = 0; i < labels.rows(); ++i) {
    if (top_of_row(labels, z, i).hit) ++count;
  }
  hits[0] = static_cast<float>(count);
}

void top_logits(const SparseLabels& labels, std::span<const float> z, std::span<float> tops) {
  require_labels("top_logits", labels, z);
  require_matrix({"top_logits", "tops"}, tops.size(), labels.rows(), kTopLogit);
  for (std::size_t i = 0; i < labels.rows(); ++i) {
    const Top top = top_of_row(labels, z, i);
    tops[i * kTopLogit] = top.value;
    tops[i * kTopLogit + 1] = top.hit ? 1.0F : 0.0F;
  }
}

void require_parts(const char* function, std::span<const float> parts, std::size_t floats) {
  if (floats != 0 && !parts.empty() && parts.size() % floats == 0) return;
  throw UsageError(std::string(function) + ": parts has " + std::to_string(parts.size()) +
                   " elements, expected one or more times " + std::to_string(floats));
}

void merge_softmax_statistics(std::span<const float> parts, std::span<float> statistics) {
  require_parts("merge_softmax_statistics", parts, statistics.size());
  require_matrix({"merge_softmax_statistics", "statistics"}, statistics.size(),
                 statistics.size() / kSoftmaxStatistics, kSoftmaxStatistics);
  const std::size_t stride = statistics.size();
  for (std::size_t at = 0; at < stride; at += kSoftmaxStatistics) {
    merge_softmax_row(parts.data() + at, parts.size() / stride, stride, statistics.data() + at);
  }
}

void merge_hits(std::span<const float> parts, std::size_t rows, std::span<float> hits) {
  const std::size_t stride = rows * kTopLogit;
  require_parts("merge_hits", parts, stride);
  require_elements({"merge_hits", "hits"}, hits.size(), 1);
  float count = 0;
  for (std::size_t at = 0; at < stride; at += kTopLogit) {
    count += merge_hit(parts.data() + at, parts.size() / stride, stride);
  }
  hits[0] = count;
}

}  // namespace weir
