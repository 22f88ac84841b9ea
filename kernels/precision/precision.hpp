#pragma once

// What a network's products are computed in: the precisions, arrays in the formats of 16 bits, and
// the two ends of loss scaling. See half.hpp for the rounding.
//
// Gradients are multiplied by the loss scale where the backward pass begins, and searched for what
// is not finite where it ends. Scale and flag lie in a step's state, of kStepStateWords words; see
// kernels/parts/step_state.hpp. On a device the host waits for neither. Source: P. Micikevicius and
// others, "Mixed precision training", ICLR 2018, section 3.2.
//
// Functions throw UsageError and change nothing if sizes differ. Thread-safe for disjoint outputs;
// calls for one state come one after the other. A converted output must not overlap the input.

#include <cstdint>
#include <span>

#include "kernels/parts/stream.hpp"
#include "kernels/precision/half.hpp"

namespace weir {

/// words[i] = x[i], rounded to nearest.
void to_half(std::span<const float> x, std::span<std::uint16_t> words, HalfKind kind);

/// x[i] = words[i], exactly.
void from_half(std::span<const std::uint16_t> words, std::span<float> x, HalfKind kind);

/// Sets the state's overflow flag if an element of x is an infinity or a NaN; never clears it.
void flag_not_finite(std::span<const float> x, std::span<float> state);

/// x[i] *= the state's loss scale. The scale is a power of two, so this rounds only what leaves the
/// range of float.
void scale_by(std::span<const float> state, std::span<float> x);

/// scale_by, and words[i] = x[i] rounded to nearest, in one pass over x.
void scale_to_half(std::span<const float> state, std::span<float> x, std::span<std::uint16_t> words,
                   HalfKind kind);

}  // namespace weir

/// On a device: see stream.hpp. `state` is aligned to 8 bytes.
namespace weir::cuda {

/// Eight elements at once from where both spans reach a 16-byte boundary.
void to_half(Stream stream, std::span<const float> x, std::span<std::uint16_t> words,
             HalfKind kind);
void from_half(Stream stream, std::span<const std::uint16_t> words, std::span<float> x,
               HalfKind kind);
/// Calls for one state may run on several streams at once.
void flag_not_finite(Stream stream, std::span<const float> x, std::span<float> state);
void scale_by(Stream stream, std::span<const float> state, std::span<float> x);
void scale_to_half(Stream stream, std::span<const float> state, std::span<float> x,
                   std::span<std::uint16_t> words, HalfKind kind);

}  // namespace weir::cuda
