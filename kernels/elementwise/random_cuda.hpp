#pragma once

/// @file
/// Random tensors on a device: the numbers of random.hpp, to the bit. Common rules:
/// elementwise_cuda.hpp.

#include <cuda_runtime_api.h>

#include <cstdint>
#include <span>

namespace weir::cuda {

/// out[i] = number first + i of the stream `random_stream` of `seed`, of N(0, 1). Throws UsageError
/// if first + out.size() exceeds 64 bits.
void fill_normal(cudaStream_t stream, std::uint64_t seed, std::uint64_t random_stream,
                 std::span<float> out, std::uint64_t first = 0);

}  // namespace weir::cuda
