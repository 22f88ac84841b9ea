#pragma once

/// @file
/// The multi-label logistic loss: each class of each row is a decision of its own, yes for the
/// row's labels and no for all other classes. z [rows x classes] are logits, row-major.
///
///   loss = 1/rows * sum_ij (ln(1 + exp(z_ij)) - y_ij z_ij),   y_ij = 1 if j is a label of row i
///   d loss / d z_ij = (1 / (1 + exp(-z_ij)) - y_ij) / rows
///
/// A label's term is computed as ln(1 + exp(-z_ij)) and its slope as -1 / (1 + exp(z_ij)), which
/// are the same and do not cancel, so no finite logit overflows. A row's terms, and then the rows'
/// sums, are added in the order of reduce.hpp, with our own exponential and logarithm, so every
/// device gives the same bits. A NaN makes the loss NaN and its own slope. `rows` is
/// SparseLabels::mean_rows.
///
/// Both throw UsageError and leave the outputs unchanged if sizes differ, there are no rows or
/// classes, or a label is no class. Thread-safe for disjoint outputs.

#include <span>

#include "kernels/sparse/csr.hpp"

namespace weir {

/// loss[0] = the mean over the rows of the sum over the classes.
void logistic_loss(const SparseLabels& labels, std::span<const float> z, std::span<float> loss);

/// The same, and dz [rows x classes] = its gradient, overwritten, in one pass over z; dz may be z.
void logistic_loss_and_gradient(const SparseLabels& labels, std::span<const float> z,
                                std::span<float> loss, std::span<float> dz);

}  // namespace weir
