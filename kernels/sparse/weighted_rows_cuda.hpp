#pragma once

/// @file
/// The sum of weighted_rows.hpp by one thread of a device, with the same bits: of one column, or of
/// four neighbouring columns by 16-byte loads. Only for the kernels' sources.

#include <cstddef>
#include <cstdint>

#include "kernels/parts/same_bits.hpp"

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

/// The arguments of sum_weighted_rows.
template <typename T>
struct RowList {
  const std::uint32_t* rows;
  const float* factors;
  std::size_t count;
  const T* matrix;
  std::size_t stride;

  template <std::size_t kRows>
  __device__ void load(std::size_t from, T (&terms)[kRows]) const {
    for (std::size_t i = 0; i < kRows; ++i) {
      terms[i] = matrix[static_cast<std::size_t>(rows[from + i]) * stride];
    }
  }
  template <std::size_t kRows>
  __device__ void add(std::size_t from, const T (&terms)[kRows], T& total) const {
    for (std::size_t i = 0; i < kRows; ++i) add_product(total, factors[from + i], terms[i]);
  }

  /// Adds the rows from `from` on, fewer than 2 kRows: kRows together, then half as many, and so
  /// on.
  template <std::size_t kRows>
  __device__ void add_rest(std::size_t from, T& total) const {
    if (from + kRows <= count) {
      T terms[kRows];
      load(from, terms);
      add(from, terms, total);
      from += kRows;
    }
    if constexpr (kRows > 1) add_rest<kRows / 2>(from, total);
  }

  /// Loads the next kTogether rows before it adds the last ones. Across the loop's end the compiler
  /// must keep them in registers, so it cannot delay the loads to save some.
  template <std::size_t kTogether>
  __device__ T sum() const {
    T total{};
    std::size_t from = 0;
    if (count >= kTogether) {
      T terms[kTogether];
      load(from, terms);
      for (; from + 2 * kTogether <= count; from += kTogether) {
        T next[kTogether];
        load(from + kTogether, next);
        add(from, terms, total);
        for (std::size_t i = 0; i < kTogether; ++i) terms[i] = next[i];
      }
      add(from, terms, total);
      from += kTogether;
    }
    add_rest<kTogether / 2>(from, total);
    return total;
  }
};

/// Returns the sum of factors[e] * matrix[rows[e] * stride] for e < count, from +0 in this order. T
/// is float, or float4 for four columns; `matrix` points at the column in row 0, and `stride` is in
/// elements of T. kTogether, a power of two from 2 on, is the number of rows that are loaded at
/// once.
template <std::size_t kTogether, typename T>
__device__ T sum_weighted_rows(const std::uint32_t* rows, const float* factors, std::size_t count,
                               const T* matrix, std::size_t stride) {
  return RowList<T>{rows, factors, count, matrix, stride}.template sum<kTogether>();
}

}  // namespace weir::cuda
