#pragma once

/// @file
/// ln(1 + e^a) and its slope, with the same bits on every device. See normal.hpp for the required
/// compiler flags. Largest errors, checked by tests/kernels/sparse_logistic_test.cpp: 3e-7
/// relative.

#include "kernels/parts/exponential.hpp"
#include "kernels/parts/host_device.hpp"
#include "kernels/parts/normal.hpp"

namespace weir {

struct Softplus {
  float value = 0;  ///< ln(1 + e^a)
  float slope = 0;  ///< 1 / (1 + e^-a)
};

/// With u = e^-|a|, at most 1: ln(1 + e^a) = max(a, 0) + ln(1 + u), and the slope is 1 / (1 + u) or
/// u / (1 + u). The sum 1 + u loses the end of u, and all of a small one; with w the rounded sum
/// and c = u - (w - 1), which is exact, ln(1 + u) = ln w + c / w to first order in c. NaN stays
/// NaN.
[[nodiscard]] WEIR_HOST_DEVICE inline Softplus softplus(float a) noexcept {
  const float power = exp_of_negative(a > 0.0F ? -a : a);
  const float sum = rounded_add(1.0F, power);
  const float share = 1.0F / sum;
  const float lost = rounded_add(power, -rounded_add(sum, -1.0F));
  const float log = rounded_add(log_of_unit(sum), rounded_multiply(lost, share));
  return {rounded_add(a > 0.0F ? a : 0.0F, log), a > 0.0F ? share : rounded_multiply(power, share)};
}

}  // namespace weir
