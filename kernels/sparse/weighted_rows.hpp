#pragma once

/// @file
/// The sum of some rows of a dense matrix, each times its own factor: a sparse row times W, or the
/// gradient of one row of W. Only for the kernels' sources: the bits hold only with
/// -ffp-contract=off. weighted_rows_cuda.hpp is the same for one thread of a device.
///
/// The order of additions is that of the list. Each product and each sum is rounded to float.

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/sparse/csr.hpp"

namespace weir {

/// Which rows, and the factor of each. A row may occur more than once.
struct WeightedRows {
  std::span<const std::uint32_t> rows;
  std::span<const float> factors;  ///< as many
};

/// The entries of row i.
[[nodiscard]] inline WeightedRows entries_of(const CsrRows& x, std::size_t i) {
  const std::size_t count = x.starts[i + 1] - x.starts[i];
  return {x.indices.subspan(x.starts[i], count), x.values.subspan(x.starts[i], count)};
}

/// The entries of the t-th touched column.
[[nodiscard]] inline WeightedRows entries_of(const CsrColumns& x, std::size_t t) {
  const std::size_t count = x.starts[t + 1] - x.starts[t];
  return {x.rows.subspan(x.starts[t], count), x.values.subspan(x.starts[t], count)};
}

/// Rows that are added in one pass over the total.
inline constexpr std::size_t kRowsTogether = 4;

/// total[j] += factor * matrix[row * stride + j] for each row of the list, then the next row.
///
/// `matrix` points at the column of total[0] in row 0; rows are `stride` elements apart, and
/// `total` is no part of them. Reads each row front to back, so the time follows the list and not
/// the height of the matrix.
inline void add_weighted_rows(WeightedRows list, const float* matrix, std::size_t stride,
                              std::span<float> total) noexcept {
  float* const __restrict sums = total.data();
  const std::size_t size = total.size();
  const auto row = [=](std::size_t e) {
    return matrix + static_cast<std::size_t>(list.rows[e]) * stride;
  };
  const float* const factors = list.factors.data();
  std::size_t e = 0;
  for (; list.rows.size() - e >= kRowsTogether; e += kRowsTogether) {
    const float* const first = row(e);
    const float* const second = row(e + 1);
    const float* const third = row(e + 2);
    const float* const fourth = row(e + 3);
    const float* const f = factors + e;
    for (std::size_t j = 0; j < size; ++j) {
      sums[j] = sums[j] + f[0] * first[j] + f[1] * second[j] + f[2] * third[j] + f[3] * fourth[j];
    }
  }
  for (; e < list.rows.size(); ++e) {
    const float* const last = row(e);
    for (std::size_t j = 0; j < size; ++j) sums[j] += factors[e] * last[j];
  }
}

}  // namespace weir
