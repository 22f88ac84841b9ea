#pragma once

/// @file
/// A dense layer whose input is sparse, y = act(X W + b), and the gradient of its weights. X is
/// m x k with few entries, W is k x n, b has n elements, y and dy are m x n, row-major without
/// gaps.
///
/// The order of additions is fixed, so every device gives the same bits: an element of X W or of dW
/// is added up from +0 over the entries in their order, each product and sum rounded. So the error
/// is at most (e + 1) * 2^-24 times the sum of the absolute products for e entries, to first order.
/// The bias is added last. relu_backward and dense_bias_gradient of dense.hpp are the rest of the
/// backward pass.
///
/// Both throw UsageError and leave the output unchanged if sizes do not match. Starts and indices
/// are not checked: see csr.hpp. Thread-safe for disjoint outputs. An output must not overlap an
/// input.

#include <span>

#include "kernels/dense.hpp"
#include "kernels/parts/stream.hpp"
#include "kernels/sparse/csr.hpp"

namespace weir {

/// y = act(X W + b); b's size is n. The time follows the entries and n, not k.
void csr_forward(const CsrRows& x, std::span<const float> w, std::span<const float> b,
                 std::span<float> y, Activation activation);

/// dw [touched x n], overwritten: its row t is row x.touched[t] of dW = X^T dy. The other rows of
/// dW are zero and not made. Ignores k.
void csr_weight_gradient(DenseShape shape, const CsrColumns& x, std::span<const float> dy,
                         std::span<float> dw);

/// Throws UsageError unless the functions accept these sizes.
void require_forward(const CsrRows& x, std::span<const float> w, std::span<const float> b,
                     std::span<const float> y);
void require_weight_gradient(DenseShape shape, const CsrColumns& x, std::span<const float> dy,
                             std::span<const float> dw);

}  // namespace weir

/// On a device: see stream.hpp. The spans within a batch are device memory too.
namespace weir::cuda {

void csr_forward(Stream stream, const CsrRows& x, std::span<const float> w,
                 std::span<const float> b, std::span<float> y, Activation activation);
void csr_weight_gradient(Stream stream, DenseShape shape, const CsrColumns& x,
                         std::span<const float> dy, std::span<float> dw);

}  // namespace weir::cuda
