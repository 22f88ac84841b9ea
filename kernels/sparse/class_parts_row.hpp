#pragma once

/// @file
/// The arithmetic of class_parts.hpp on one row, the same on every device. `row` has the row's
/// results of part 0; those of the next part are `stride` elements further. For the sources of this
/// folder. See normal.hpp for the required compiler flags.

#include <cstddef>

#include "kernels/parts/exponential.hpp"
#include "kernels/parts/host_device.hpp"
#include "kernels/parts/normal.hpp"

namespace weir {

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
