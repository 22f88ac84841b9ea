#pragma once

// Operations on each element alone. Products and sums are each rounded to float, never fused, so a
// device that does the same gives the same bits.
//
// Sizes that differ throw UsageError, with the output untouched. Thread-safe for disjoint outputs.
// An input may be the very span of the output, but must not overlap it in part.

#include <span>

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
