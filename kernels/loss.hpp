#pragma once

// Losses of predictions whose targets are dense: the L2 loss, and softmax with cross-entropy.
//
// The L2 loss of a prediction p and a target t, both of m elements (all of a batch together):
//
//   loss = 1/2 * mean((p - t)^2) = 1/(2 m) * sum_i (p_i - t_i)^2
//   d loss / d p_i = (p_i - t_i) / m
//
// The half simplifies the gradient; a loss without it is twice as large.
//
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
// All throw UsageError and leave the output unchanged if sizes differ, there are no elements, rows
// or classes, or a label is no class. Thread-safe for disjoint outputs.

#include <cstddef>
#include <span>

#include "kernels/parts/stream.hpp"

namespace weir {

/// loss[0] = the loss; `loss` has one element. The squares are added in the order of reduce.hpp.
void l2_loss(std::span<const float> p, std::span<const float> t, std::span<float> loss);

/// dp[i] = (p[i] - t[i]) / m, overwritten; dp may be p itself.
void l2_loss_gradient(std::span<const float> p, std::span<const float> t, std::span<float> dp);

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

/// Throw UsageError that names `function` unless the sizes fit. Return the number of elements.
float require_targets(const char* function, std::span<const float> p, std::span<const float> t);
void require_logits(const char* function, LogitShape shape, std::span<const float> z,
                    std::span<const float> labels);

}  // namespace weir

/// On a device: see stream.hpp and, for the workspace, workspace_cuda.hpp.
///
/// Labels are on the device and not checked. A label that is no class, which the CPU refuses, makes
/// the row's loss (and so the mean) and gradient NaN, and counts as wrong. Refuses more than 2^30
/// classes.
namespace weir::cuda {

void l2_loss(Stream stream, std::span<const float> p, std::span<const float> t,
             std::span<float> loss, std::span<float> workspace);
void l2_loss_gradient(Stream stream, std::span<const float> p, std::span<const float> t,
                      std::span<float> dp);
void softmax_cross_entropy(Stream stream, LogitShape shape, std::span<const float> z,
                           std::span<const float> labels, std::span<float> loss,
                           std::span<float> workspace);
void softmax_cross_entropy_gradient(Stream stream, LogitShape shape, std::span<const float> z,
                                    std::span<const float> labels, std::span<float> dz);
void count_correct(Stream stream, LogitShape shape, std::span<const float> z,
                   std::span<const float> labels, std::span<float> correct,
                   std::span<float> workspace);

}  // namespace weir::cuda
