#pragma once

// Operations on each element alone. Products and sums are rounded to float separately, never fused,
// so every device that does the same gives the same bits.
//
// Throws UsageError and leaves the output unchanged if sizes differ. Thread-safe for disjoint
// outputs. An input may be the output's span, but must not overlap it partly.

#include <span>

#include "kernels/parts/stream.hpp"

namespace weir {

/// out[i] = value.
void fill(std::span<float> out, float value);

/// total[i] += x[i].
void add(std::span<const float> x, std::span<float> total);

/// y[i] += alpha * x[i].
void axpy(float alpha, std::span<const float> x, std::span<float> y);

/// x[i] *= alpha.
void scale(float alpha, std::span<float> x);

}  // namespace weir

/// On a device: see stream.hpp.
namespace weir::cuda {

void fill(Stream stream, std::span<float> out, float value);
void add(Stream stream, std::span<const float> x, std::span<float> total);
void axpy(Stream stream, float alpha, std::span<const float> x, std::span<float> y);
void scale(Stream stream, float alpha, std::span<float> x);

}  // namespace weir::cuda
