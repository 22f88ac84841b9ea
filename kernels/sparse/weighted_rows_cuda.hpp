#pragma once

/// @file
/// The sum of weighted_rows.hpp by one thread of a device, with the same bits: one column, or four
/// neighbouring columns by 16-byte loads. For the sources of this folder.

#include <cstddef>
#include <cstdint>

#include "kernels/parts/normal.hpp"

namespace weir::cuda {

__device__ inline void add_product(float& total, float factor, float term) {
  total = rounded_add(total, rounded_multiply(factor, term));
}
__device__ inline void add_product(float4& total, float factor, float4 term) {
  add_product(total.x, factor, term.x);
  add_product(total.y, factor, term.y);
  add_product(total.z, factor, term.z);
  add_product(total.w, factor, term.w);
}

/// Adds kRows rows of the list. Loads all before it adds one, so that the loads overlap.
template <std::size_t kRows, typename T>
__device__ void add_rows_together(const std::uint32_t* rows, const float* factors, const T* matrix,
                                  std::size_t stride, T& total) {
  T terms[kRows];
  for (std::size_t e = 0; e < kRows; ++e) {
    terms[e] = matrix[static_cast<std::size_t>(rows[e]) * stride];
  }
  for (std::size_t e = 0; e < kRows; ++e) add_product(total, factors[e], terms[e]);
}

/// Returns the sum of factors[e] * matrix[rows[e] * stride] for e < count, from +0 in this order. T
/// is float, or float4 for four columns; `matrix` points at the column in row 0, and `stride` is in
/// elements of T. kTogether loads are in flight at a time.
template <std::size_t kTogether, typename T>
__device__ T sum_weighted_rows(const std::uint32_t* rows, const float* factors, std::size_t count,
                               const T* matrix, std::size_t stride) {
  T total{};
  std::size_t e = 0;
  for (; e + kTogether <= count; e += kTogether) {
    add_rows_together<kTogether>(rows + e, factors + e, matrix, stride, total);
  }
  for (; e < count; ++e) add_rows_together<1>(rows + e, factors + e, matrix, stride, total);
  return total;
}

}  // namespace weir::cuda
