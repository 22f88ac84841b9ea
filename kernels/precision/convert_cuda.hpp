#pragma once

/// @file
/// The conversions of convert.hpp on a device, with the CPU's bits. Common rules:
/// kernels/elementwise/elementwise_cuda.hpp.

#include <cuda_runtime_api.h>

#include <cstdint>
#include <span>

#include "kernels/precision/half.hpp"

namespace weir::cuda {

/// words[i] = x[i], rounded to nearest. Eight elements at once from where both spans reach a
/// 16-byte boundary.
void to_half(cudaStream_t stream, std::span<const float> x, std::span<std::uint16_t> words,
             HalfKind kind);

/// x[i] = words[i], exactly; by eights as above.
void from_half(cudaStream_t stream, std::span<const std::uint16_t> words, std::span<float> x,
               HalfKind kind);

}  // namespace weir::cuda
