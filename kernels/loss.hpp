#pragma once

// The L2 loss of a prediction p and a target t, both of m elements (all of a batch together):
//
//   loss = 1/2 * mean((p - t)^2) = 1/(2 m) * sum_i (p_i - t_i)^2
//   d loss / d p_i = (p_i - t_i) / m
//
// The half simplifies the gradient; a loss without it is twice as large. Both functions throw
// UsageError and leave the output unchanged if sizes differ or m = 0. Thread-safe for disjoint
// outputs.

#include <span>

namespace weir {

/// loss[0] = the loss; `loss` has one element. The squares are added in the order of reduce.hpp.
void l2_loss(std::span<const float> p, std::span<const float> t, std::span<float> loss);

/// dp[i] = (p[i] - t[i]) / m, overwritten; dp may be p itself.
void l2_loss_gradient(std::span<const float> p, std::span<const float> t, std::span<float> dp);

}  // namespace weir
