#pragma once

/// @file
/// The arithmetic of losses.hpp on one row, the same on every device. For the sources of this
/// folder. See same_bits.hpp for the required compiler flags.

#include <cfloat>
#include <cstddef>

#include "kernels/parts/host_device.hpp"
#include "kernels/parts/same_bits.hpp"

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

// Merges. `row` has the row's results of part 0; those of the next part are `stride` elements
// further.

/// Writes the row's four statistics.
WEIR_HOST_DEVICE inline void merge_softmax_row(const float* row, std::size_t parts,
                                               std::size_t stride, float* statistics) noexcept {
  float largest = row[0];
  for (std::size_t p = 1; p < parts; ++p) {
    const float other = row[p * stride];
    if (other > largest) largest = other;
  }
  float total = 0;
  float at_labels = 0;
  float labels = 0;
  for (std::size_t p = 0; p < parts; ++p) {
    const float* const part = row + p * stride;
    const float share = exp_of_negative(rounded_add(part[0], -largest));
    total = rounded_add(total, rounded_multiply(part[1], share));
    at_labels = rounded_add(at_labels, part[2]);
    labels = rounded_add(labels, part[3]);
  }
  statistics[0] = largest;
  statistics[1] = total;
  statistics[2] = at_labels;
  statistics[3] = labels;
}

/// Returns 1 if the row is a hit, else 0. Of equal logits the first part has the first.
[[nodiscard]] WEIR_HOST_DEVICE inline float merge_hit(const float* row, std::size_t parts,
                                                      std::size_t stride) noexcept {
  float best = row[0];
  float hit = row[1];
  bool nan = best != best;
  for (std::size_t p = 1; p < parts; ++p) {
    const float other = row[p * stride];
    if (other != other) nan = true;
    if (other > best) {
      best = other;
      hit = row[p * stride + 1];
    }
  }
  return nan ? 0.0F : hit;
}

}  // namespace weir
