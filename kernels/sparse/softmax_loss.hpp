#pragma once

/// @file
/// Softmax and cross-entropy with several labels: the target of row i is uniform over its c_i
/// labels. z [rows x classes] are logits, row-major. With M_i the largest logit of row i and
/// S_i = sum_j exp(z_ij - M_i):
///
///   loss = 1/rows * sum_i (ln S_i + M_i - 1/c_i sum_l z_il)       l: the labels of row i
///   d loss / d z_ij = exp(z_ij - M_i) / (S_i rows) - [j is a label] / (c_i rows)
///
/// A row without labels has loss 0 and gradient 0, whatever its logits, and counts in the mean.
///
/// In three steps, so that the logits are read twice in all, and that ranks that have a part of the
/// classes each can put their statistics together in between (class_parts.hpp): for each row M_i,
/// S_i, the sum of its labels' logits and their number; from them the loss; from them and the
/// logits the gradient. `rows` is SparseLabels::mean_rows.
///
/// The order is fixed, with our own exponential and logarithm, so every device gives the same bits.
/// The row is cut into the tiles of reduce.hpp. A tile has its own largest logit M_t and the sum
/// S_t of its exp(z - M_t); the terms of S_i are S_t * exp(M_t - M_i). All sums are in the order of
/// reduce.hpp. A labelled row with a NaN, a logit of +infinity or nothing but -infinity has loss
/// and gradient NaN; one with a label of -infinity has the loss infinity.
///
/// All throw UsageError and leave the output unchanged if sizes differ, there are no rows or
/// classes, or a label is no class. Thread-safe for disjoint outputs.

#include <cstddef>
#include <span>

#include "kernels/sparse/csr.hpp"

namespace weir {

/// Floats of a row's statistics: M_i, at least the smallest float; S_i; the sum of its labels'
/// logits; c_i, exact up to 2^24.
inline constexpr std::size_t kSoftmaxStatistics = 4;

/// statistics [rows x kSoftmaxStatistics], overwritten.
void softmax_statistics(const SparseLabels& labels, std::span<const float> z,
                        std::span<float> statistics);

/// loss[0] = the mean loss of the rows. Reads no label.
void softmax_loss(const SparseLabels& labels, std::span<const float> statistics,
                  std::span<float> loss);

/// dz [rows x classes] = the loss's gradient, overwritten; dz may be z itself.
void softmax_gradient(const SparseLabels& labels, std::span<const float> z,
                      std::span<const float> statistics, std::span<float> dz);

}  // namespace weir
