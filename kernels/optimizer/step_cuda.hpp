#pragma once

/// @file
/// step.hpp's functions for a state on a device, with the same bits. Common rules:
/// elementwise_cuda.hpp.

#include <cuda_runtime_api.h>

#include <span>

#include "kernels/optimizer/step.hpp"

namespace weir::cuda {

void begin_step(cudaStream_t stream, std::span<float> state, double beta1, double beta2);
void end_step(cudaStream_t stream, std::span<float> state, const LossScaling& scaling);

}  // namespace weir::cuda
