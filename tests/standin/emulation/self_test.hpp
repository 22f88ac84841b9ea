#pragma once

// Kernels that use what the emulation offers, for its own tests.

#include <cuda_runtime_api.h>

#include <cstddef>

namespace weir::standin::testing {

void reverse_blocks(cudaStream_t stream, float* numbers, unsigned blocks, unsigned threads);
void sum_blocks(cudaStream_t stream, const float* numbers, std::size_t count, float* sums,
                unsigned blocks, unsigned threads);
void look_at_lanes(cudaStream_t stream, int* seen);
void leave_early(cudaStream_t stream, int* counted, unsigned threads);
void hang(cudaStream_t stream, int* seen);

}  // namespace weir::standin::testing
