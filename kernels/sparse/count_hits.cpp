#include "kernels/sparse/count_hits.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "kernels/parts/check.hpp"
#include "kernels/sparse/label_lists.hpp"

namespace weir {
namespace {

bool is_hit(std::span<const float> z, std::span<const std::uint32_t> labels) {
  std::size_t largest = 0;
  for (std::size_t j = 0; j < z.size(); ++j) {
    if (std::isnan(z[j])) return false;
    if (z[j] > z[largest]) largest = j;
  }
  return std::ranges::find(labels, largest) != labels.end();
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
