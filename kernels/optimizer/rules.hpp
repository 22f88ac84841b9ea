#pragma once

/// @file
/// The formulas of options.hpp for one weight, for the sources of this folder on all devices. Each
/// rule is a structure of floats, made once for a step, with
///
///   static constexpr std::size_t kMoments         how many moments it has
///   static Rule of(options, state)                its constants in this step
///   void step(Element& e, float g) const          changes a weight and its moments; g is the
///                                                 gradient as the loss scale has made it
///
/// Rules have no initial values, because they lie in a block's shared memory. Division and square
/// root are IEEE's on every device, unless a compiler is told otherwise.

#include <cmath>
#include <cstddef>

#include "kernels/optimizer/options.hpp"
#include "kernels/parts/host_device.hpp"
#include "kernels/parts/same_bits.hpp"
#include "kernels/parts/step_state.hpp"

namespace weir {

/// A weight and its moments. A moment that the rule does not have is not used.
struct Element {
  float w = 0;
  float first = 0;
  float second = 0;
};

namespace optimizer_parts {

WEIR_HOST_DEVICE inline float in_float(double value) { return static_cast<float>(value); }

/// Exact while the scale is a power of two, unless a result is subnormal.
WEIR_HOST_DEVICE inline float unscale_of(const StepState& state) { return 1.0F / state.loss_scale; }

/// m + (1 - beta1) (g - m), as PyTorch's `lerp`.
WEIR_HOST_DEVICE inline float mean(float m, float g, float one_minus_beta1) {
  return rounded_add(m, rounded_multiply(one_minus_beta1, rounded_add(g, -m)));
}

}  // namespace optimizer_parts

struct SgdRule {
  static constexpr std::size_t kMoments = 0;
  float unscale;
  float rate;

  WEIR_HOST_DEVICE static SgdRule of(const OptimizerOptions& options, const StepState& state) {
    return {optimizer_parts::unscale_of(state), optimizer_parts::in_float(options.lr)};
  }
  WEIR_HOST_DEVICE void step(Element& e, float g) const {
    e.w = rounded_add(e.w, -rounded_multiply(rate, rounded_multiply(g, unscale)));
  }
};

struct MomentumRule {
  static constexpr std::size_t kMoments = 1;
  float unscale;
  float rate;
  float momentum;

  WEIR_HOST_DEVICE static MomentumRule of(const OptimizerOptions& options, const StepState& state) {
    using optimizer_parts::in_float;
    return {optimizer_parts::unscale_of(state), in_float(options.lr), in_float(options.momentum)};
  }
  WEIR_HOST_DEVICE void step(Element& e, float g) const {
    e.first = rounded_add(rounded_multiply(momentum, e.first), rounded_multiply(g, unscale));
    e.w = rounded_add(e.w, -rounded_multiply(rate, e.first));
  }
};

struct AdamRule {
  static constexpr std::size_t kMoments = 2;
  float unscale;
  float one_minus_beta1;
  float beta2;
  float one_minus_beta2;
  float step_size;
  float inverse_root;  ///< 1 / sqrt(1 - beta2^t). A product in place of a division.
  float eps;

  WEIR_HOST_DEVICE static AdamRule of(const OptimizerOptions& options, const StepState& state) {
    using optimizer_parts::in_float;
    return {optimizer_parts::unscale_of(state),
            in_float(1.0 - options.beta1),
            in_float(options.beta2),
            in_float(1.0 - options.beta2),
            in_float(options.lr / (1.0 - state.beta1_power)),
            in_float(1.0 / std::sqrt(1.0 - state.beta2_power)),
            in_float(options.eps)};
  }
  WEIR_HOST_DEVICE void step(Element& e, float scaled) const {
    const float g = rounded_multiply(scaled, unscale);
    e.first = optimizer_parts::mean(e.first, g, one_minus_beta1);
    e.second = rounded_add(rounded_multiply(beta2, e.second),
                           rounded_multiply(rounded_multiply(one_minus_beta2, g), g));
    const float divisor = rounded_add(rounded_multiply(rounded_sqrt(e.second), inverse_root), eps);
    e.w = rounded_add(e.w, -(rounded_multiply(step_size, e.first) / divisor));
  }
};

struct AdamaxRule {
  static constexpr std::size_t kMoments = 2;
  float unscale;
  float one_minus_beta1;
  float beta2;
  float step_size;
  float eps;

  WEIR_HOST_DEVICE static AdamaxRule of(const OptimizerOptions& options, const StepState& state) {
    using optimizer_parts::in_float;
    return {optimizer_parts::unscale_of(state), in_float(1.0 - options.beta1),
            in_float(options.beta2), in_float(options.lr / (1.0 - state.beta1_power)),
            in_float(options.eps)};
  }
  WEIR_HOST_DEVICE void step(Element& e, float scaled) const {
    const float g = rounded_multiply(scaled, unscale);
    e.first = optimizer_parts::mean(e.first, g, one_minus_beta1);
    const float decayed = rounded_multiply(beta2, e.second);
    const float now = rounded_add(float_of_bits(bits_of_float(g) & 0x7FFFFFFFU), eps);
    e.second = decayed > now ? decayed : now;  // now, if it is NaN
    e.w = rounded_add(e.w, -(rounded_multiply(step_size, e.first) / e.second));
  }
};

/// Calls `work` with the optimizer's rule as its template argument.
template <typename Work>
void with_rule(Optimizer optimizer, const Work& work) {
  switch (optimizer) {
    case Optimizer::kSgd:
      return work.template operator()<SgdRule>();
    case Optimizer::kMomentum:
      return work.template operator()<MomentumRule>();
    case Optimizer::kAdam:
      return work.template operator()<AdamRule>();
    case Optimizer::kAdamax:
      return work.template operator()<AdamaxRule>();
  }
}

}  // namespace weir
