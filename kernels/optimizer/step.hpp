#pragma once

/// @file
/// Begins and ends a training step: counts it, and applies the rule of the dynamic loss scale. See
/// step_state.hpp for the order of a step.
///
/// The rule is that of P. Micikevicius et al., "Mixed precision training", ICLR 2018,
/// https://arxiv.org/abs/1710.03740, and of PyTorch's `torch.amp.GradScaler`: grow after some steps
/// without an overflow; after an overflow shrink, and skip the step.

#include <cstdint>
#include <span>

#include "kernels/parts/host_device.hpp"
#include "kernels/parts/step_state.hpp"
#include "kernels/parts/stream.hpp"

namespace weir {

/// Powers of two, so that scaling a gradient is exact.
struct LossScaling {
  float first = 0x1p16F;
  float least = 1;
  float most = 0x1p24F;
  std::uint32_t grow_after = 2000;  ///< clean steps until the scale is doubled
};

/// The scale stays 1. An overflow still skips its step.
inline constexpr LossScaling kNoLossScaling{.first = 1, .least = 1, .most = 1};

/// Returns the state before the first step.
[[nodiscard]] inline StepState initial_step_state(const LossScaling& scaling) {
  StepState state;
  state.loss_scale = scaling.first;
  return state;
}

/// The step counts, unless its gradients overflowed.
[[nodiscard]] WEIR_HOST_DEVICE inline StepState begun(StepState state, double beta1, double beta2) {
  if (state.overflow != 0) return state;
  ++state.steps;
  state.beta1_power *= beta1;
  state.beta2_power *= beta2;
  return state;
}

/// The scale for the next step, with the flag cleared. At its least or most it stays, and the clean
/// steps are counted anew all the same.
[[nodiscard]] WEIR_HOST_DEVICE inline StepState ended(StepState state, const LossScaling& scaling) {
  if (state.overflow != 0) {
    const float half = state.loss_scale * 0.5F;
    state.loss_scale = half > scaling.least ? half : scaling.least;
    state.clean_steps = 0;
    ++state.skipped_steps;
    state.overflow = 0;
  } else if (++state.clean_steps >= scaling.grow_after) {
    const float twice = state.loss_scale * 2;
    state.loss_scale = twice < scaling.most ? twice : scaling.most;
    state.clean_steps = 0;
  }
  return state;
}

/// `begun` and `ended` for the `kStepStateWords` words of a tensor in host memory. Throw UsageError
/// and change nothing unless 0 <= beta < 1, 0 < least <= most, and grow_after > 0. The betas must
/// be those of the updates (options.hpp). Thread-safe for different states.
void begin_step(std::span<float> state, double beta1, double beta2);
void end_step(std::span<float> state, const LossScaling& scaling);

/// Throw UsageError that names `function` unless begin_step and end_step accept this.
void require_betas(const char* function, double beta1, double beta2);
void require_scaling(const char* function, const LossScaling& scaling);

}  // namespace weir

/// On a device: see stream.hpp.
namespace weir::cuda {

void begin_step(Stream stream, std::span<float> state, double beta1, double beta2);
void end_step(Stream stream, std::span<float> state, const LossScaling& scaling);

}  // namespace weir::cuda
