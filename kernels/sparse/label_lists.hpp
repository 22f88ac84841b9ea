#pragma once

/// @file
/// Checks of a call's labels and logits. For the sources of this folder.

#include <span>
#include <string_view>

#include "kernels/sparse/csr.hpp"

namespace weir {

/// Throws UsageError that names `function` unless there is a row and a class, z has rows x classes
/// elements, and the labels' starts are there. Reads no label, so they may be on a device.
void require_logits(std::string_view function, const SparseLabels& labels,
                    std::span<const float> z);

/// The same, and that the starts ascend to the number of labels and each label is a class. For
/// labels on the host.
void require_labels(std::string_view function, const SparseLabels& labels,
                    std::span<const float> z);

/// The labels of row i.
[[nodiscard]] inline std::span<const std::uint32_t> labels_of(const SparseLabels& labels,
                                                              std::size_t i) {
  return labels.indices.subspan(labels.starts[i], labels.starts[i + 1] - labels.starts[i]);
}

}  // namespace weir
