#pragma once

/// @file
/// A dense layer whose input is sparse, y = act(X W + b). X is m x k with few entries, W is k x n,
/// b has n elements, y is m x n, row-major without gaps.
///
/// The order of additions is fixed, so every device gives the same bits: an element of X W is added
/// up from +0 over the entries in their order, each product and sum rounded. So the error is at
/// most (e + 1) * 2^-24 times the sum of the absolute products for e entries, to first order. The
/// bias is added last. The backward pass is relu_and_bias_gradient, and update_rows for the
/// weights.
///
/// Throws UsageError and leaves the output unchanged if sizes do not match. Starts and indices are
/// not checked: see csr.hpp. Thread-safe for disjoint outputs. An output must not overlap an input.

#include <span>

#include "kernels/dense.hpp"
#include "kernels/parts/stream.hpp"
#include "kernels/sparse/csr.hpp"

namespace weir {

/// y = act(X W + b); b's size is n. The time follows the entries and n, not k.
void csr_forward(const CsrRows& x, std::span<const float> w, std::span<const float> b,
                 std::span<float> y, Activation activation);

/// Throws UsageError unless the function accepts these sizes.
void require_forward(const CsrRows& x, std::span<const float> w, std::span<const float> b,
                     std::span<const float> y);

}  // namespace weir

/// On a device: see stream.hpp. The spans within a batch are device memory too.
namespace weir::cuda {

void csr_forward(Stream stream, const CsrRows& x, std::span<const float> w,
                 std::span<const float> b, std::span<float> y, Activation activation);

}  // namespace weir::cuda
