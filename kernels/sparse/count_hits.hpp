#pragma once

/// @file
/// How many rows' largest logit is one of their labels (precision at 1).

#include <span>

#include "kernels/sparse/csr.hpp"

namespace weir {

/// hits[0] = the number of rows whose largest logit is one of their labels. z [rows x classes],
/// row-major. The first of equal logits counts as the largest; a row with a NaN is no hit, nor is
/// one without labels. Exact up to 2^24 rows.
///
/// Throws UsageError and leaves the output unchanged if sizes differ, there are no rows or classes,
/// or a label is no class. Thread-safe for disjoint outputs.
void count_hits(const SparseLabels& labels, std::span<const float> z, std::span<float> hits);

}  // namespace weir
