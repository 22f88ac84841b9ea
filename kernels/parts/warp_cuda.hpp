#pragma once

/// @file
/// Operations of the 32 lanes of a warp together, for the kernels of this folder. All lanes must
/// call them at the same point.

#include <cstddef>

#include "kernels/parts/grid_cuda.hpp"

namespace weir::cuda {

inline constexpr unsigned kAllLanes = 0xFFFFFFFFU;

/// Step 3 of reduce.hpp's order. Lane 0 gets the sum; the other lanes' results are undefined.
__device__ inline float fold_lanes(float value) {
  for (unsigned half = kWarpLanes / 2; half > 0; half /= 2) {
    value += __shfl_down_sync(kAllLanes, value, half);
  }
  return value;
}

/// The same for every lane.
__device__ inline float fold_lanes_to_all(float value) {
  return __shfl_sync(kAllLanes, fold_lanes(value), 0);
}

/// Returns the largest of all lanes' values to each lane. No value is NaN.
__device__ inline float largest_of_lanes(float value) {
  for (unsigned half = kWarpLanes / 2; half > 0; half /= 2) {
    const float other = __shfl_xor_sync(kAllLanes, value, static_cast<int>(half));
    value = other > value ? other : value;
  }
  return value;
}

}  // namespace weir::cuda
