#include "kernels/sparse/count_hits.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>

#include "kernels/parts/check.hpp"
#include "kernels/parts/vectors.hpp"
#include "kernels/sparse/label_lists.hpp"

namespace weir {
namespace {

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

}  // namespace weir
