#pragma once

/// @file
/// Losses and hits of sparse labels. z [rows x classes] are logits, row-major.
///
/// The order of all sums is fixed, with our own exponential and logarithm, so every device gives
/// the same bits. All throw UsageError and leave the outputs unchanged if sizes differ, there are
/// no rows or classes, or a label is no class. Thread-safe for disjoint outputs.

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/parts/stream.hpp"
#include "kernels/sparse/csr.hpp"

namespace weir {

// Softmax and cross-entropy with several labels: the target of row i is uniform over its c_i
// labels. With M_i the largest logit of row i and
// S_i = sum_j exp(z_ij - M_i):
//
//   loss = 1/rows * sum_i (ln S_i + M_i - 1/c_i sum_l z_il)       l: the labels of row i
//   d loss / d z_ij = exp(z_ij - M_i) / (S_i rows) - [j is a label] / (c_i rows)
//
// A row without labels has loss 0 and gradient 0, whatever its logits, and counts in the mean.
//
// In three steps, so that the logits are read twice in all, and that ranks that have a part of the
// classes each can put their statistics together in between (merge_softmax_statistics): for each
// row M_i, S_i, the sum of its labels' logits and their number; from them the loss; from them and
// the logits the gradient. `rows` is SparseLabels::mean_rows.
//
// The row is cut into the tiles of reduce.hpp. A tile has its own largest logit M_t and the sum
// S_t of its exp(z - M_t); the terms of S_i are S_t * exp(M_t - M_i). All sums are in the order of
// reduce.hpp. A labelled row with a NaN, a logit of +infinity or nothing but -infinity has loss
// and gradient NaN; one with a label of -infinity has the loss infinity.

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

// The multi-label logistic loss: each class of each row is a decision of its own, yes for the
// row's labels and no for all other classes.
//
//   loss = 1/rows * sum_ij (ln(1 + exp(z_ij)) - y_ij z_ij),   y_ij = 1 if j is a label of row i
//   d loss / d z_ij = (1 / (1 + exp(-z_ij)) - y_ij) / rows
//
// A label's term is computed as ln(1 + exp(-z_ij)) and its slope as -1 / (1 + exp(z_ij)), which
// are the same and do not cancel, so no finite logit overflows. A row's terms, and then the rows'
// sums, are added in the order of reduce.hpp. A NaN makes the loss NaN and its own slope. `rows` is
// SparseLabels::mean_rows.

/// loss[0] = the mean over the rows of the sum over the classes.
void logistic_loss(const SparseLabels& labels, std::span<const float> z, std::span<float> loss);

/// The same, and dz [rows x classes] = its gradient, overwritten, in one pass over z; dz may be z.
void logistic_loss_and_gradient(const SparseLabels& labels, std::span<const float> z,
                                std::span<float> loss, std::span<float> dz);

// Hits: rows whose largest logit is one of their labels (precision at 1). The first of equal logits
// counts as the largest; a row with a NaN is no hit, nor is one without labels.

/// hits[0] = the number of rows whose largest logit is one of their labels. Exact up to 2^24 rows.
void count_hits(const SparseLabels& labels, std::span<const float> z, std::span<float> hits);

/// Floats of a row's top: its largest logit, NaN if the row has one; and 1 if the row is a hit,
/// else 0.
inline constexpr std::size_t kTopLogit = 2;

/// tops [rows x kTopLogit], overwritten: for merge_hits, where each of several ranks has a part of
/// the classes.
void top_logits(const SparseLabels& labels, std::span<const float> z, std::span<float> tops);

// What several ranks found in their parts of the classes, put together. `parts` has the results of
// each part for all rows, one part after the other, in the order of the classes, which is that of
// the additions. Both throw UsageError and leave the output unchanged unless `parts` is a whole
// number of parts, at least one.

/// statistics [rows x kSoftmaxStatistics], overwritten, from parts [n x rows x kSoftmaxStatistics].
/// With M_p and S_p of part p:
///
///   M = max_p M_p,   S = sum_p S_p exp(M_p - M),   and the sums of the rest
void merge_softmax_statistics(std::span<const float> parts, std::span<float> statistics);

/// hits[0] = the rows whose largest logit, of all parts, is one of their labels; parts
/// [n x rows x kTopLogit] as top_logits makes them.
void merge_hits(std::span<const float> parts, std::size_t rows, std::span<float> hits);

/// Throws UsageError unless `parts` are one or more of `floats` elements. Names `function`.
void require_parts(const char* function, std::span<const float> parts, std::size_t floats);

/// Throws UsageError that names `function` unless there is a row and a class, z has rows x classes
/// elements, and the labels' starts are there. Reads no label, so they may be on a device.
void require_logits(const char* function, const SparseLabels& labels, std::span<const float> z);

/// The same, and that the starts ascend to the number of labels and each label is a class. For
/// labels on the host.
void require_labels(const char* function, const SparseLabels& labels, std::span<const float> z);

/// The labels of row i.
[[nodiscard]] inline std::span<const std::uint32_t> labels_of(const SparseLabels& labels,
                                                              std::size_t i) {
  return labels.indices.subspan(labels.starts[i], labels.starts[i + 1] - labels.starts[i]);
}

}  // namespace weir

/// On a device: see stream.hpp and, for the workspace, workspace_cuda.hpp.
///
/// Labels are on the device and not checked. One that is no class makes the row's softmax loss (and
/// so the mean) NaN; the other functions ignore it. Refuses more than 2^25 classes.
namespace weir::cuda {

void softmax_statistics(Stream stream, const SparseLabels& labels, std::span<const float> z,
                        std::span<float> statistics, std::span<float> workspace);
void softmax_loss(Stream stream, const SparseLabels& labels, std::span<const float> statistics,
                  std::span<float> loss, std::span<float> workspace);
void softmax_gradient(Stream stream, const SparseLabels& labels, std::span<const float> z,
                      std::span<const float> statistics, std::span<float> dz);
void logistic_loss(Stream stream, const SparseLabels& labels, std::span<const float> z,
                   std::span<float> loss, std::span<float> workspace);
void logistic_loss_and_gradient(Stream stream, const SparseLabels& labels, std::span<const float> z,
                                std::span<float> loss, std::span<float> dz,
                                std::span<float> workspace);
void count_hits(Stream stream, const SparseLabels& labels, std::span<const float> z,
                std::span<float> hits, std::span<float> workspace);
void top_logits(Stream stream, const SparseLabels& labels, std::span<const float> z,
                std::span<float> tops, std::span<float> workspace);
void merge_softmax_statistics(Stream stream, std::span<const float> parts,
                              std::span<float> statistics);
void merge_hits(Stream stream, std::span<const float> parts, std::size_t rows,
                std::span<float> hits, std::span<float> workspace);

}  // namespace weir::cuda
