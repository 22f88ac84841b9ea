#include "kernels/sparse/logistic_loss.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>
#include <vector>

#include "kernels/parts/check.hpp"
#include "kernels/sparse/label_lists.hpp"
#include "kernels/sparse/softplus.hpp"
#include "kernels/sums/sum_terms.hpp"

namespace weir {
namespace {

using Labels = std::span<const std::uint32_t>;

/// The terms and the slopes of up to kSumTile classes of a row. Apart from z and dz, which may be
/// the same memory, so that the compiler may compute several at once.
struct LogisticTile {
  std::array<float, kSumTile> values;
  std::array<float, kSumTile> slopes;

  /// `labels` are those from class `begin` on; returns the rest of them, beyond the tile.
  Labels compute(std::span<const float> z, std::size_t begin, Labels labels) {
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
void run(std::string_view function, const SparseLabels& labels, std::span<const float> z,
         std::span<float> loss, std::span<float> dz) {
  require_labels(function, labels, z);
  require_elements({function, "loss"}, loss.size(), 1);
  const std::size_t rows = labels.rows();
  const auto mean_rows = static_cast<float>(labels.mean_rows());
  const float part = 1.0F / mean_rows;
  std::vector<float> sums((labels.classes - 1) / kSumTile + 1);
  LogisticTile tile{};
  const auto row_loss = [&](std::size_t i) {
    Labels left = labels_of(labels, i);
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

}  // namespace

void logistic_loss(const SparseLabels& labels, std::span<const float> z, std::span<float> loss) {
  run("logistic_loss", labels, z, loss, {});
}

void logistic_loss_and_gradient(const SparseLabels& labels, std::span<const float> z,
                                std::span<float> loss, std::span<float> dz) {
  require_elements({"logistic_loss_and_gradient", "dz"}, dz.size(), z.size());
  run("logistic_loss_and_gradient", labels, z, loss, dz);
}

}  // namespace weir
