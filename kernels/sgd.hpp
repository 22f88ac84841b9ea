#pragma once

// Steps of stochastic gradient descent on weights w with gradient g, in place.
//
// Momentum follows PyTorch's `torch.optim.SGD` (dampening 0, no Nesterov): the velocity is a
// decayed sum of gradients, multiplied by the learning rate when applied. In the other convention,
// v = momentum * v + lr * g, a change of the learning rate also affects the past.
//
// Each product and each sum is rounded to float, never fused. Throws UsageError and changes nothing
// if sizes differ. Thread-safe for disjoint outputs.

#include <span>

namespace weir {

/// w[i] -= lr * g[i].
void sgd(std::span<float> w, std::span<const float> g, float lr);

/// v[i] = momentum * v[i] + g[i], then w[i] -= lr * v[i]. v starts as zeros.
void sgd_momentum(std::span<float> w, std::span<const float> g, std::span<float> v, float lr,
                  float momentum);

}  // namespace weir
