#pragma once

/// @file
/// Steps of stochastic gradient descent on a device, with the bits of sgd.hpp. Common rules:
/// elementwise_cuda.hpp.

#include <cuda_runtime_api.h>

#include <span>

namespace weir::cuda {

/// w[i] -= lr * g[i].
void sgd(cudaStream_t stream, std::span<float> w, std::span<const float> g, float lr);

/// v[i] = momentum * v[i] + g[i], then w[i] -= lr * v[i]. v starts as zeros.
void sgd_momentum(cudaStream_t stream, std::span<float> w, std::span<const float> g,
                  std::span<float> v, float lr, float momentum);

}  // namespace weir::cuda
