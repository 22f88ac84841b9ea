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
#include "kernels/parts/stream.hpp"
#include "kernels/sparse/csr.hpp"

namespace weir {

/// Changes all weights by the gradient g, which has as many elements.
void update(const OptimizerOptions& options, const Weights& weights, std::span<const float> g,
            std::span<const float> state);

/// Which rows of a layer's weights a step changes.
enum class UpdatedRows : std::uint8_t {
  /// All: the gradient of a row that the batch did not touch is zero, so its moments decay and,
  /// with moments, the row moves on. The same bits as csr_weight_gradient, zeros in the rows that
  /// it does not make, and `update`.
  kAll,
  /// The rows that the batch touched. Saves the pass over the others, and is another algorithm (in
  /// PyTorch's words `SparseAdam`): moments do not decay and weights rest in steps that do not
  /// touch them. Bias corrections still count all steps.
  kTouched,
};

/// The same for a layer whose input X is sparse: `weights` are k x n, dy is m x n, and the gradient
/// X^T dy is summed up row by row on the way, as csr_weight_gradient does, and never stored. So
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

}  // namespace weir::cuda
