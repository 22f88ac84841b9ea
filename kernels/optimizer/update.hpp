#pragma once

/// @file
/// One step of an optimizer, in one pass over the weights and their moments: the gradient is
/// divided by the loss scale, the moments and the weight change, and a copy in a shorter format is
/// written. See options.hpp for the formulas, step_state.hpp for the state.
///
/// Nothing changes if the state's overflow flag is set. Begin the step before: at t = 0 the
/// corrections of Adam and AdaMax divide by zero.
///
/// Throws UsageError and changes nothing if a size or an option is not allowed. Thread-safe for
/// disjoint outputs; the state is only read.

#include <cstdint>
#include <span>

#include "kernels/dense.hpp"
#include "kernels/optimizer/options.hpp"
#include "kernels/parts/host_device.hpp"
#include "kernels/parts/step_state.hpp"
#include "kernels/parts/stream.hpp"
#include "kernels/sparse/csr.hpp"

namespace weir {

/// Changes all weights by the gradient g, which has as many elements.
void update(const OptimizerOptions& options, const Weights& weights, std::span<const float> g,
            std::span<const float> state);

/// Which rows of a layer's weights a step changes.
enum class UpdatedRows : std::uint8_t {
  /// All: the gradient of a row that the batch did not touch is zero, so its moments decay and,
  /// with moments, the row moves on. The same bits as X^T dy, zeros in the rows that X does
  /// not touch, and `update`.
  kAll,
  /// The rows that the batch touched. Saves the pass over the others, and is another algorithm (in
  /// PyTorch's words `SparseAdam`): moments do not decay and weights rest in steps that do not
  /// touch them. Bias corrections still count all steps.
  kTouched,
};

/// The same for a layer whose input X is sparse: `weights` are k x n, dy is m x n, and the gradient
/// X^T dy is summed up from +0 in the order of X's rows on the way, and never stored. So
/// nobody can look at it before: check dy for an overflow.
///
/// kSgd has no moments: it changes the touched rows alone, which is the same either way. A copy is
/// written for the rows that change.
void update_rows(const OptimizerOptions& options, const Weights& weights, DenseShape shape,
                 const CsrColumns& x, std::span<const float> dy, std::span<const float> state,
                 UpdatedRows rows);

/// Throws UsageError unless update_rows accepts these sizes. Names `function`.
void require_rows(const char* function, const Weights& weights, DenseShape shape,
                  const CsrColumns& x, std::span<const float> dy);

// Plain steps, without a state.
//
// Momentum follows PyTorch's `torch.optim.SGD` (dampening 0, no Nesterov): the velocity is a
// decayed sum of gradients, multiplied by the learning rate when applied. In the other convention,
// v = momentum * v + lr * g, a change of the learning rate also affects the past.

/// w[i] -= lr * g[i].
void sgd(std::span<float> w, std::span<const float> g, float lr);

/// v[i] = momentum * v[i] + g[i], then w[i] -= lr * v[i]. v starts as zeros.
void sgd_momentum(std::span<float> w, std::span<const float> g, std::span<float> v, float lr,
                  float momentum);

/// Begins and ends a training step: counts it, and applies the rule of the dynamic loss scale. See
/// step_state.hpp for the order of a step.
///
/// The rule is that of P. Micikevicius et al., "Mixed precision training", ICLR 2018,
/// https://arxiv.org/abs/1710.03740, and of PyTorch's `torch.amp.GradScaler`: grow after some steps
/// without an overflow; after an overflow shrink, and skip the step.

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

/// On a device: see stream.hpp. The spans of `weights` and `x` are device memory too, and the state
/// is aligned to 8 bytes.
namespace weir::cuda {

void update(Stream stream, const OptimizerOptions& options, const Weights& weights,
            std::span<const float> g, std::span<const float> state);
/// Rows are moved sixteen bytes at once if n is a multiple of 4 and w, the moments and dy are
/// aligned to 16 bytes, and the copy to 8; else element by element. n is at most 2^31.
void update_rows(Stream stream, const OptimizerOptions& options, const Weights& weights,
                 DenseShape shape, const CsrColumns& x, std::span<const float> dy,
                 std::span<const float> state, UpdatedRows rows);
void sgd(Stream stream, std::span<float> w, std::span<const float> g, float lr);
void sgd_momentum(Stream stream, std::span<float> w, std::span<const float> g, std::span<float> v,
                  float lr, float momentum);

void begin_step(Stream stream, std::span<float> state, double beta1, double beta2);
void end_step(Stream stream, std::span<float> state, const LossScaling& scaling);

}  // namespace weir::cuda
