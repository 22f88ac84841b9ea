#pragma once

/// @file
/// The sum of weighted_rows.hpp by one thread of a device, with the same bits: one column, or four
/// neighbouring columns by 16-byte loads. Only for the kernels' sources.

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

/// Adds the next kRows rows of the list. Loads all before it adds one, so that the loads overlap.
template <std::size_t kRows, typename T>
__device__ void add_rows_together(const std::uint32_t* rows, const float* factors, const T* matrix,
                                  std::size_t stride, T& total) {
  T terms[kRows];
  for (std::size_t e = 0; e < kRows; ++e) {
    terms[e] = matrix[static_cast<std::size_t>(rows[e]) * stride];
  }
  for (std::size_t e = 0; e < kRows; ++e) add_product(total, factors[e], terms[e]);
}

/// Adds `count` rows of the list to the total in order: kTogether at a time, then the rest in
/// quarters of that.
template <std::size_t kTogether, typename T>
__device__ void add_weighted_rows(const std::uint32_t* rows, const float* factors,
                                  std::size_t count, const T* matrix, std::size_t stride,
                                  T& total) {
  std::size_t e = 0;
  for (; e + kTogether <= count; e += kTogether) {
    add_rows_together<kTogether>(rows + e, factors + e, matrix, stride, total);
  }
  if constexpr (kTogether > 1) {
    add_weighted_rows<kTogether / 4>(rows + e, factors + e, count - e, matrix, stride, total);
  }
}

/// Returns the sum of factors[e] * matrix[rows[e] * stride] for e < count, from +0 in this order. T
/// is float, or float4 for four columns; `matrix` points at the column in row 0, and `stride` is in
/// elements of T. At most kTogether loads, a power of 4, are in flight.
template <std::size_t kTogether, typename T>
__device__ T sum_weighted_rows(const std::uint32_t* rows, const float* factors, std::size_t count,
                               const T* matrix, std::size_t stride) {
  T total{};
  add_weighted_rows<kTogether>(rows, factors, count, matrix, stride, total);
  return total;
}

}  // namespace weir::cuda
