#pragma once

/// @file
/// Operations on each element alone, on a device, with the bits of elementwise.hpp.
///
/// Common rules of `weir::cuda`: spans are device memory. A call checks the sizes (UsageError, with
/// nothing enqueued), enqueues on `stream` and returns; CudaError on failure. Thread-safe for
/// disjoint outputs. "The same bits" does not cover the payload of a NaN.
///
/// A span may start at any element. Spans of one call that reach a 16-byte boundary at the same
/// element are moved sixteen bytes at once, others element by element.

#include <cuda_runtime_api.h>

#include <span>

namespace weir::cuda {

/// out[i] = value.
void fill(cudaStream_t stream, std::span<float> out, float value);

/// total[i] += x[i].
void add(cudaStream_t stream, std::span<const float> x, std::span<float> total);

/// y[i] += alpha * x[i], the product and the sum each rounded.
void axpy(cudaStream_t stream, float alpha, std::span<const float> x, std::span<float> y);

/// x[i] *= alpha.
void scale(cudaStream_t stream, float alpha, std::span<float> x);

}  // namespace weir::cuda
