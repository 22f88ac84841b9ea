#include "kernels/sparse/count_hits.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
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

bool is_hit(std::span<const float> z, std::span<const std::uint32_t> labels) {
  const std::optional<float> largest = largest_number(z);
  if (!largest) return false;
  std::size_t first = z.size();
  for (const std::uint32_t label : labels) {
    if (z[label] == *largest) first = std::min<std::size_t>(first, label);
  }
  if (first == z.size()) return false;
  const std::span<const float> before = z.first(first);
  return std::ranges::find(before, *largest) == before.end();
}

}  // namespace

void count_hits(const SparseLabels& labels, std::span<const float> z, std::span<float> hits) {
  require_labels("count_hits", labels, z);
  require_elements({"count_hits", "hits"}, hits.size(), 1);
  std::size_t count = 0;
  for (std::size_t i = 0; i < labels.rows(); ++i) {
    const bool hit = is_hit(z.subspan(i * labels.classes, labels.classes), labels_of(labels, i));
    if (hit) ++count;
  }
  hits[0] = static_cast<float>(count);
}

}  // namespace weir
