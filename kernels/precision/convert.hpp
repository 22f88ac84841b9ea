#pragma once

// Converts arrays between float and the 16-bit formats. See half.hpp for the rounding.
//
// Throws UsageError and leaves the output unchanged if the sizes differ. Thread-safe for disjoint
// outputs. The output must not overlap the input.

#include <cstdint>
#include <span>

#include "kernels/precision/half.hpp"

namespace weir {

/// words[i] = x[i], rounded to nearest.
void to_half(std::span<const float> x, std::span<std::uint16_t> words, HalfKind kind);

/// x[i] = words[i], exactly.
void from_half(std::span<const std::uint16_t> words, std::span<float> x, HalfKind kind);

}  // namespace weir
