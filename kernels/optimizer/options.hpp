#pragma once

/// @file
/// Which optimizer, with which constants, and what it reads and writes.
///
/// The formulas are those of PyTorch's `torch.optim` without weight decay. g is the gradient
/// divided by the loss scale, t the number of steps that were not skipped; moments start as zeros.
///
/// @verbatim
///   kSgd       w -= lr g
///   kMomentum  v = momentum v + g                            w -= lr v
///   kAdam      m += (1 - beta1) (g - m)
///              v = beta2 v + (1 - beta2) g^2
///              w -= lr / (1 - beta1^t) m / (sqrt(v) / sqrt(1 - beta2^t) + eps)
///   kAdamax    m as above
///              u = max(beta2 u, |g| + eps)                   w -= lr / (1 - beta1^t) m / u
/// @endverbatim
///
/// Source: D. Kingma, J. Ba, "Adam: a method for stochastic optimization", ICLR 2015,
/// https://arxiv.org/abs/1412.6980, algorithms 1 and 2. In AdaMax eps is PyTorch's addition: the
/// paper has none, and divides by zero for a weight whose gradients were all zero.
///
/// What depends on the step alone is computed in double and rounded once. Of the rest each
/// operation is rounded to float, so every device gives the same bits. The largest difference from
/// PyTorch's float results, and from double ones, is in tests/kernels/optimizer_host_test.cpp.

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/precision/precision.hpp"

namespace weir {

enum class Optimizer : std::uint8_t { kSgd, kMomentum, kAdam, kAdamax };

/// PyTorch's defaults for Adam. Its AdaMax has lr = 2e-3.
struct OptimizerOptions {
  Optimizer optimizer = Optimizer::kAdam;
  double lr = 1e-3;
  double momentum = 0.9;
  double beta1 = 0.9;  ///< the same for begin_step
  double beta2 = 0.999;
  double eps = 1e-8;
};

/// Returns how many moments each weight has: 0, 1 or 2.
[[nodiscard]] std::size_t moments_of(Optimizer optimizer) noexcept;

/// A copy of the weights in a shorter format, written by the update that changes them.
struct HalfCopy {
  std::span<std::uint16_t> words;  ///< as many as weights; empty: no copy
  HalfKind kind = HalfKind::kBf16;
};

/// What an update changes. The spans must not overlap each other or the gradient.
struct Weights {
  std::span<float> w;
  std::span<float> first;  ///< m, or momentum's v; as many as w, or none if there is no such moment
  std::span<float> second;  ///< Adam's v, AdaMax's u
  HalfCopy copy;
};

/// Throws UsageError that names `function` unless lr and momentum are finite and not negative, the
/// betas at least 0 and below 1, eps finite and above 0 as float, and all spans of `weights` as
/// long as they should be. Thread-safe.
void require_update(const char* function, const OptimizerOptions& options, const Weights& weights);

}  // namespace weir
