#pragma once

/// @file
/// Eight 16-bit numbers at once, for the kernels of this folder.

#include <cstdint>

#include "kernels/parts/each_cuda.hpp"
#include "kernels/precision/half.hpp"

namespace weir::cuda {

/// Rounds two neighbours, the first into the lower half.
template <HalfKind Kind>
__device__ inline unsigned pack_two(float first, float second) {
  return half_of_float<Kind>(first) | (static_cast<unsigned>(half_of_float<Kind>(second)) << 16U);
}

/// Rounds eight neighbours; `words` must be aligned to 16 bytes.
template <HalfKind Kind>
__device__ inline void store_eight(std::uint16_t* words, float4 low, float4 high) {
  *reinterpret_cast<uint4*>(words) =
      uint4{pack_two<Kind>(low.x, low.y), pack_two<Kind>(low.z, low.w),
            pack_two<Kind>(high.x, high.y), pack_two<Kind>(high.z, high.w)};
}

/// The two numbers of a pair as floats, the lower half first.
template <HalfKind Kind>
__device__ inline float low_of(unsigned pair) {
  return float_of_half<Kind>(static_cast<std::uint16_t>(pair & 0xFFFFU));
}
template <HalfKind Kind>
__device__ inline float high_of(unsigned pair) {
  return float_of_half<Kind>(static_cast<std::uint16_t>(pair >> 16U));
}

}  // namespace weir::cuda
