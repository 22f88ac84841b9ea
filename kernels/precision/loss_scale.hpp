#pragma once

// The two ends of loss scaling: gradients are multiplied by the scale where the backward pass
// begins, and searched for what is not finite where it ends. Scale and flag lie in a step's state;
// see kernels/parts/step_state.hpp.
//
// Source: P. Micikevicius and others, "Mixed precision training", ICLR 2018, section 3.2.
//
// `state` has kStepStateWords words. Throws UsageError and changes nothing if it has not, or if
// other sizes differ. Thread-safe for disjoint outputs; calls for one state come one after the
// other.

#include <cstdint>
#include <span>

#include "kernels/precision/half.hpp"

namespace weir {

/// Sets the state's overflow flag if an element of x is an infinity or a NaN; never clears it.
void flag_not_finite(std::span<const float> x, std::span<float> state);

/// x[i] *= the state's loss scale. The scale is a power of two, so this rounds only what leaves the
/// range of float.
void scale_by(std::span<const float> state, std::span<float> x);

/// scale_by, and words[i] = x[i] rounded to nearest, in one pass over x.
void scale_to_half(std::span<const float> state, std::span<float> x, std::span<std::uint16_t> words,
                   HalfKind kind);

}  // namespace weir
