#pragma once

/// @file
/// The arithmetic of softmax_loss.hpp on one row, the same on every device. For the sources of this
/// folder. See normal.hpp for the required compiler flags.

#include <cfloat>
#include <cstdint>

#include "kernels/parts/exponential.hpp"
#include "kernels/parts/host_device.hpp"
#include "kernels/parts/normal.hpp"

namespace weir {

/// Where the search for a row's largest logit starts, so that it is never minus infinity, from
/// which no logit could be subtracted.
inline constexpr float kLeastLogit = -FLT_MAX;

/// A row's loss, from its statistics.
[[nodiscard]] WEIR_HOST_DEVICE inline float softmax_row_loss(const float* statistics) noexcept {
  const float labels = statistics[3];
  if (labels == 0.0F) return 0.0F;
  const float total = statistics[1];
  // A finite largest logit's own term is 1, so a valid total is a normal number.
  if (!(total > 0.0F)) return float_of_bits(0x7FC00000U);
  const float label = statistics[2] / labels;
  return rounded_add(log_of_unit(total), rounded_add(statistics[0], -label));
}

/// The gradient of a row with labels.
struct SoftmaxSlope {
  float largest = 0;
  float factor = 0;  ///< of e^(z - largest)
  float target = 0;  ///< what a label's slope is less

  WEIR_HOST_DEVICE SoftmaxSlope(const float* statistics, float rows) noexcept
      : largest(statistics[0]),
        factor(1.0F / rounded_multiply(statistics[1], rows)),
        target(1.0F / rounded_multiply(statistics[3], rows)) {}

  /// The slope of a class that is no label; a label's is this less `target`.
  [[nodiscard]] WEIR_HOST_DEVICE float share(float z) const noexcept {
    return rounded_multiply(exp_of_negative(rounded_add(z, -largest)), factor);
  }
};

}  // namespace weir
