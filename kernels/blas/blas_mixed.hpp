#pragma once

// Matrix products in a chosen precision, with sums in float32. See blas.hpp for shapes, layouts,
// options and errors: they hold here too.
//
// On the CPU a factor is rounded to the format and the product is float32's, so that a run shows
// what the precision costs in accuracy; nothing gets faster. Works in tiles, with 3 MiB of memory
// of its own whatever the matrices' sizes.

#include <cstdint>
#include <span>

#include "kernels/blas/blas.hpp"
#include "kernels/precision/half.hpp"
#include "kernels/precision/precision.hpp"

namespace weir {

/// c = alpha * op(a) * op(b) + beta * c. kFloat32 is `gemm` of blas.hpp; kTf32 rounds a and b to
/// tf32 on the way. Throws UsageError for the formats of 16 bits, whose factors are words.
void gemm(Precision precision, GemmShape shape, std::span<const float> a, std::span<const float> b,
          std::span<float> c, GemmOptions options = {});

/// The same of 16-bit factors. The product of two of their numbers is exact in float32 unless it
/// leaves its range.
void gemm(HalfKind kind, GemmShape shape, std::span<const std::uint16_t> a,
          std::span<const std::uint16_t> b, std::span<float> c, GemmOptions options = {});

/// The same with each sum rounded to a word at its end. fp16 turns large ones into infinities. Also
/// throws UsageError unless beta is 0: a sum over several products belongs in float32.
void gemm(HalfKind kind, GemmShape shape, std::span<const std::uint16_t> a,
          std::span<const std::uint16_t> b, std::span<std::uint16_t> c, GemmOptions options = {});

}  // namespace weir
