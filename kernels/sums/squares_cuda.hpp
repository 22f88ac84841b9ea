#pragma once

/// @file
/// The sum of squared differences for the L2 loss, for the sources of this folder.

#include <cstddef>
#include <span>

#include "kernels/parts/normal.hpp"
#include "kernels/sums/sum_tiles_cuda.hpp"

namespace weir::cuda {

/// The terms (x[i] - y[i])^2.
struct SquareTerms {
  const float* x;
  const float* y;

  __device__ static float square(float a, float b) {
    const float difference = rounded_add(a, -b);
    return rounded_multiply(difference, difference);
  }
  __device__ float one(std::size_t i) const { return square(x[i], y[i]); }
  __device__ float4 four(std::size_t i) const {
    const float4 a = *reinterpret_cast<const float4*>(x + i);
    const float4 b = *reinterpret_cast<const float4*>(y + i);
    return float4{square(a.x, b.x), square(a.y, b.y), square(a.z, b.z), square(a.w, b.w)};
  }
};

/// out[0] = the finished sum of the squares. x and y have the same size.
inline void enqueue_squared_distance(const char* name, cudaStream_t stream,
                                     std::span<const float> x, std::span<const float> y,
                                     Finish finish, float* out, std::span<float> workspace) {
  const auto terms_from = [x, y](std::size_t begin) {
    return SquareTerms{x.data() + begin, y.data() + begin};
  };
  sum_of_terms(name, stream, terms_from, is_aligned(x.data()) && is_aligned(y.data()), x.size(),
               finish, out, workspace);
}

}  // namespace weir::cuda
