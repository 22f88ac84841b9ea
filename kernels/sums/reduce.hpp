#pragma once

// Sums whose order of additions is written down, so that every device and every alignment gives the
// same bits.
//
// The order, for the terms t[0] ... t[n - 1]:
//   1. Cut the terms into tiles of kSumTile; the last may be shorter.
//   2. In a tile, lane l of kSumLanes adds t[l], t[l + kSumLanes], ... in order, starting from +0.
//   3. Fold the lanes: lane[l] += lane[l + h] for h = kSumLanes / 2, ..., 2, 1. lane[0] is the
//   tile's
//      sum. On a GPU steps 2 and 3 are one warp and five shuffles.
//   4. More than one tile: the tiles' sums are the terms of the next pass, from step 1.
// A term that is missing may be added as +0: a lane starts at +0, so no bit changes.
//
// Error: at most 37 roundings on the way of a term per pass (32 in its lane, 5 in the fold), so
// |error| <= 37 p 2^-24 sum |t| to first order, with p = 1 up to 2^10 terms, 2 up to 2^20, 3 up to
// 2^30. Source of the bound: N. Higham, "The accuracy of floating point summation", SIAM J. Sci.
// Comput. 14 (1993).

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

#include "kernels/parts/stream.hpp"

namespace weir {

inline constexpr std::size_t kSumLanes = 32;
inline constexpr std::size_t kSumTile = kSumLanes * kSumLanes;

/// The sum of x in the order above; 0 when empty. Thread-safe, takes no memory, cannot fail.
[[nodiscard]] float sum(std::span<const float> x) noexcept;

/// The sum of (x[i] - y[i])^2 in the order above, each difference and square rounded to float.
/// Throws UsageError when the sizes differ. Thread-safe.
[[nodiscard]] float squared_distance(std::span<const float> x, std::span<const float> y);

// The sum, in reduce.hpp's order, of terms computed on the fly. Only for the kernels' sources: the
// order holds only with -ffp-contract=off.

/// Steps 2 and 3 for one tile: the terms begin ... end - 1, at most kSumTile of them.
template <typename Term>
float sum_tile(std::size_t begin, std::size_t end, const Term& term) noexcept {
  std::array<float, kSumLanes> lanes{};
  std::size_t i = begin;
  for (; end - i >= kSumLanes; i += kSumLanes) {
    for (std::size_t l = 0; l < kSumLanes; ++l) lanes[l] += term(i + l);
  }
  for (std::size_t l = 0; l < end - i; ++l) lanes[l] += term(i + l);
  for (std::size_t half = kSumLanes / 2; half > 0; half /= 2) {
    for (std::size_t l = 0; l < half; ++l) lanes[l] += lanes[l + half];
  }
  return lanes[0];
}

/// The sum of term(begin) ... term(end - 1), each computed once.
///
/// Passes from the last to the first: the terms are cut into at most kSumTile parts whose length is
/// a power of kSumTile, and each part's sum is a term of the last pass.
template <typename Term>
float sum_terms(std::size_t begin, std::size_t end, const Term& term) noexcept {
  if (end - begin <= kSumTile) return sum_tile(begin, end, term);
  std::size_t length = kSumTile;
  while ((end - begin - 1) / length >= kSumTile) length *= kSumTile;
  std::array<float, kSumTile> sums;
  std::size_t parts = 0;
  for (std::size_t i = begin; i < end; i += std::min(length, end - i)) {
    sums[parts++] = sum_terms(i, i + std::min(length, end - i), term);
  }
  return sum_tile(0, parts, [&sums](std::size_t i) noexcept { return sums[i]; });
}

}  // namespace weir

/// On a device: see stream.hpp and, for the workspace, workspace_cuda.hpp. `total` has one element.
namespace weir::cuda {

void sum(Stream stream, std::span<const float> x, std::span<float> total,
         std::span<float> workspace);
void squared_distance(Stream stream, std::span<const float> x, std::span<const float> y,
                      std::span<float> total, std::span<float> workspace);

}  // namespace weir::cuda
