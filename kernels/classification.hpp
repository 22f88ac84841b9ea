#pragma once

// Classification: `rows` predictions of `classes` logits each, z [rows x classes] row-major, and
// each row's class, labels [rows], a whole number from 0 to below `classes`, as a float.
//
// Softmax and cross-entropy, with M_i the largest logit of row i, which keeps every exponent at or
// below zero, and S_i = sum_j exp(z_ij - M_i):
//
//   loss = 1/rows * sum_i (ln S_i + M_i - z_i,label)
//   d loss / d z_ij = (exp(z_ij - M_i) / S_i - [j is the label]) / rows
//
// Sums are added in the order of reduce.hpp, with our own exponential and logarithm, so every
// device gives the same bits. A row with a NaN or a logit of +infinity has the loss NaN.
//
// All throw UsageError and leave the output unchanged if sizes differ, there are no rows or
// classes, or a label is no class. Thread-safe for disjoint outputs.

#include <cstddef>
#include <span>

namespace weir {

struct LogitShape {
  std::size_t rows = 0;
  std::size_t classes = 0;
};

/// loss[0] = the mean loss of the rows.
void softmax_cross_entropy(LogitShape shape, std::span<const float> z,
                           std::span<const float> labels, std::span<float> loss);

/// dz [rows x classes] = the loss's gradient, overwritten; dz may be z itself.
void softmax_cross_entropy_gradient(LogitShape shape, std::span<const float> z,
                                    std::span<const float> labels, std::span<float> dz);

/// correct[0] = the number of rows whose label has the largest logit. The first of equal logits
/// counts as the largest; a row with a NaN is wrong. Exact up to 2^24 rows.
void count_correct(LogitShape shape, std::span<const float> z, std::span<const float> labels,
                   std::span<float> correct);

}  // namespace weir
