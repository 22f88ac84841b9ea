#pragma once

/// @file
/// One row of logits, processed by one warp, for classification_cuda.cu. All lanes of the warp call
/// each function and get the same result.

#include <cstddef>
#include <cstdint>

#include "kernels/parts/exponential.hpp"
#include "kernels/parts/warp_cuda.hpp"
#include "kernels/sums/warp_terms_cuda.hpp"

namespace weir::cuda {

/// The most classes: those of a row's sum.
inline constexpr std::size_t kMostClasses = kMostWarpTerms;

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
    return largest_of_lanes(best);
  }

  /// Returns the sum of exp(z[j] - largest), in reduce.hpp's order.
  __device__ float total(float largest) const {
    const float* const logits = z;
    return sum_terms_of_warp(classes, [logits, largest](std::size_t j) {
      return exp_of_negative(rounded_add(logits[j], -largest));
    });
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
