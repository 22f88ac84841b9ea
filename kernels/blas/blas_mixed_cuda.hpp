#pragma once

/// @file
/// The products of blas_mixed.hpp by cuBLAS, on device memory, on the device's tensor cores where
/// it has them for the format. Handle, workspace, order and errors are those of blas_cuda.hpp.
///
/// Sums are float32, but a tensor core may cut off where the CPU rounds, and aligns several
/// products before it adds them. Source: M. Fasi and others, "Numerical behavior of NVIDIA tensor
/// cores", PeerJ Computer Science 7 (2021), which found this on a V100, a T4 and an A100
/// (unverified on later ones). So the tests allow a device's sum four times the error of the CPU's:
/// (k + 1) 2^-22 sum |a b|.

#include <cuda_runtime_api.h>

#include <cstdint>
#include <span>

#include "kernels/blas/blas_cuda.hpp"
#include "kernels/precision/half.hpp"
#include "kernels/precision/precision.hpp"

namespace weir::cuda {

/// c = alpha * op(a) * op(b) + beta * c. kFloat32 is `gemm` of blas_cuda.hpp; kTf32 lets the tensor
/// cores take a and b as tf32 (see tf32_of_float for how they round). Throws UsageError for the
/// formats of 16 bits, whose factors are words.
void gemm(CublasHandle& handle, cudaStream_t stream, Precision precision, GemmShape shape,
          std::span<const float> a, std::span<const float> b, std::span<float> c,
          GemmOptions options, std::span<float> workspace);

/// The same of 16-bit factors.
void gemm(CublasHandle& handle, cudaStream_t stream, HalfKind kind, GemmShape shape,
          std::span<const std::uint16_t> a, std::span<const std::uint16_t> b, std::span<float> c,
          GemmOptions options, std::span<float> workspace);

/// The same with each sum rounded to a word at its end. Also throws UsageError unless beta is 0.
void gemm(CublasHandle& handle, cudaStream_t stream, HalfKind kind, GemmShape shape,
          std::span<const std::uint16_t> a, std::span<const std::uint16_t> b,
          std::span<std::uint16_t> c, GemmOptions options, std::span<float> workspace);

}  // namespace weir::cuda
