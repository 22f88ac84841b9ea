#pragma once

/// @file
/// One row of logits, processed by one warp, for classification_cuda.cu. All lanes of the warp call
/// each function and get the same result.

#include <cstddef>
#include <cstdint>

#include "kernels/parts/exponential.hpp"
#include "kernels/parts/warp_cuda.hpp"
#include "kernels/sums/reduce.hpp"

namespace weir::cuda {

/// The most classes: kSumTile to the power of the sum's passes over a row.
inline constexpr std::size_t kMostClasses = kSumTile * kSumTile * kSumTile;

/// A row: its logits and its label as given.
struct LogitRow {
  const float* z;
  std::size_t classes;
  float label;

  /// Whether the label is a class; false for NaN.
  __device__ bool labelled() const {
    if (!(label >= 0.0F && label < static_cast<float>(classes))) return false;
    return static_cast<float>(static_cast<std::uint64_t>(label)) == label;
  }

  /// Skips NaNs: they reappear in the terms.
  __device__ float largest() const {
    float best = float_of_bits(0xFF800000U);  // -infinity
    for (std::size_t j = threadIdx.x % kWarpLanes; j < classes; j += kWarpLanes) {
      best = z[j] > best ? z[j] : best;
    }
    for (unsigned half = kWarpLanes / 2; half > 0; half /= 2) {
      const float other = __shfl_xor_sync(kAllLanes, best, static_cast<int>(half));
      best = other > best ? other : best;
    }
    return best;
  }

  /// Returns the sum of exp(z[j] - largest), in reduce.hpp's order. A tile's sum goes to the lane
  /// that adds it in the next pass; a pass over one term would change no bit.
  __device__ float total(float largest) const {
    const unsigned lane = threadIdx.x % kWarpLanes;
    const std::size_t tiles = (classes - 1) / kSumTile + 1;
    float second = 0;
    float third = 0;
    for (std::size_t tile = 0; tile < tiles; ++tile) {
      const std::size_t begin = tile * kSumTile;
      const std::size_t end = begin + kSumTile < classes ? begin + kSumTile : classes;
      float sum = 0;
      for (std::size_t j = begin + lane; j < end; j += kWarpLanes) {
        sum += exp_of_negative(rounded_add(z[j], -largest));
      }
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

  /// Whether the label is the first of the largest logits, and no logit is NaN.
  __device__ bool correct() const {
    float best = float_of_bits(0xFF800000U);  // -infinity, as every logit may be
    unsigned long long at = classes;          // none yet: any element of the same size comes first
    int nans = 0;
    for (std::size_t j = threadIdx.x % kWarpLanes; j < classes; j += kWarpLanes) {
      const float value = z[j];
      if (value != value) nans = 1;
      if (value > best || (value == best && at == classes)) {
        best = value;
        at = j;
      }
    }
    for (unsigned half = kWarpLanes / 2; half > 0; half /= 2) {
      const float other = __shfl_xor_sync(kAllLanes, best, static_cast<int>(half));
      const unsigned long long there = __shfl_xor_sync(kAllLanes, at, static_cast<int>(half));
      nans |= __shfl_xor_sync(kAllLanes, nans, static_cast<int>(half));
      if (other > best || (other == best && there < at)) {
        best = other;
        at = there;
      }
    }
    return nans == 0 && labelled() && at == static_cast<std::uint64_t>(label);
  }
};

}  // namespace weir::cuda
