#pragma once

// The sum, in reduce.hpp's order, of terms computed on the fly. Only for the kernels' sources: the
// order holds only with -ffp-contract=off.

#include <algorithm>
#include <array>
#include <cstddef>

#include "kernels/sums/reduce.hpp"

namespace weir {

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
