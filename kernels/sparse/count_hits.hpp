#pragma once

/// @file
/// How many rows' largest logit is one of their labels (precision at 1). z [rows x classes] are
/// logits, row-major. The first of equal logits counts as the largest; a row with a NaN is no hit,
/// nor is one without labels.
///
/// Both throw UsageError and leave the output unchanged if sizes differ, there are no rows or
/// classes, or a label is no class. Thread-safe for disjoint outputs.

#include <cstddef>
#include <span>

#include "kernels/sparse/csr.hpp"

namespace weir {

/// hits[0] = the number of rows whose largest logit is one of their labels. Exact up to 2^24 rows.
void count_hits(const SparseLabels& labels, std::span<const float> z, std::span<float> hits);

/// Floats of a row's top: its largest logit, NaN if the row has one; and 1 if the row is a hit,
/// else 0.
inline constexpr std::size_t kTopLogit = 2;

/// tops [rows x kTopLogit], overwritten: for merge_hits, where each of several ranks has a part of
/// the classes.
void top_logits(const SparseLabels& labels, std::span<const float> z, std::span<float> tops);

}  // namespace weir
