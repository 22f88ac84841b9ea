#pragma once

/// @file
/// The sum, in reduce.hpp's order, of terms that one warp computes on the fly. For the kernels'
/// sources.

#include <cstddef>

#include "kernels/parts/warp_cuda.hpp"
#include "kernels/sums/reduce.hpp"

namespace weir::cuda {

/// The most terms: kSumTile to the power of the sum's passes.
inline constexpr std::size_t kMostWarpTerms = kSumTile * kSumTile * kSumTile;

/// Returns the sum of term(0) ... term(count - 1), at most kMostWarpTerms; 0 if there are none. All
/// lanes of the warp call it and get the same result.
///
/// A tile's sum goes to the lane that adds it in the next pass; a pass over one term would change
/// no bit.
template <typename Term>
__device__ float sum_terms_of_warp(std::size_t count, const Term& term) {
  const unsigned lane = threadIdx.x % kWarpLanes;
  const std::size_t tiles = count == 0 ? 1 : (count - 1) / kSumTile + 1;
  float second = 0;
  float third = 0;
  for (std::size_t tile = 0; tile < tiles; ++tile) {
    const std::size_t begin = tile * kSumTile;
    const std::size_t end = begin + kSumTile < count ? begin + kSumTile : count;
    float sum = 0;
    for (std::size_t i = begin + lane; i < end; i += kWarpLanes) sum += term(i);
    sum = fold_lanes_to_all(sum);
    if (tiles == 1) return sum;
    if (tile % kWarpLanes == lane) second += sum;
    if (tile % kSumTile != kSumTile - 1 && tile + 1 != tiles) continue;
    sum = fold_lanes_to_all(second);
    second = 0;
    if (tile / kSumTile % kWarpLanes == lane) third += sum;
  }
  return fold_lanes_to_all(third);
}

}  // namespace weir::cuda
