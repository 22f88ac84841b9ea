#include "kernels/sparse/label_lists.hpp"

#include <cstddef>
#include <string>

#include "allocator/base/error.hpp"
#include "kernels/parts/check.hpp"

namespace weir {

void require_logits(std::string_view function, const SparseLabels& labels,
                    std::span<const float> z) {
  if (labels.rows() == 0 || labels.classes == 0) {
    throw UsageError(std::string(function) + ": needs at least one row and one class");
  }
  require_matrix({function, "z"}, z.size(), labels.rows(), labels.classes);
}

void require_labels(std::string_view function, const SparseLabels& labels,
                    std::span<const float> z) {
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

}  // namespace weir
