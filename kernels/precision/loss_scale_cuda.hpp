#pragma once

/// @file
/// The two ends of loss scaling on a device, with the bits of loss_scale.hpp. The scale is read and
/// the flag is written there: the host waits for nothing. Common rules:
/// kernels/elementwise/elementwise_cuda.hpp. `state` must be aligned to 8 bytes.

#include <cuda_runtime_api.h>

#include <cstdint>
#include <span>

#include "kernels/precision/half.hpp"

namespace weir::cuda {

/// Sets the state's overflow flag if an element of x is an infinity or a NaN; never clears it.
/// Calls for one state may run on several streams at once.
void flag_not_finite(cudaStream_t stream, std::span<const float> x, std::span<float> state);

/// x[i] *= the state's loss scale.
void scale_by(cudaStream_t stream, std::span<const float> state, std::span<float> x);

/// scale_by, and words[i] = x[i] rounded to nearest, in one pass over x.
void scale_to_half(cudaStream_t stream, std::span<const float> state, std::span<float> x,
                   std::span<std::uint16_t> words, HalfKind kind);

}  // namespace weir::cuda
