#pragma once

// What products in a precision require on every device.

#include "allocator/base/error.hpp"
#include "kernels/blas/blas.hpp"
#include "kernels/precision/precision.hpp"

namespace weir {

inline void require_float_factors(Precision precision) {
  if (!half_kind(precision)) return;
  throw UsageError("gemm: a precision of 16 bits needs factors of 16 bits: copy them by to_half");
}

inline void require_overwriting(GemmOptions options) {
  if (options.beta == 0.0F) return;
  throw UsageError("gemm: a result of 16 bits is only written: beta must be 0");
}

}  // namespace weir
