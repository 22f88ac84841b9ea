#pragma once

// Computes how much of the copying to a device is hidden behind its computing.

#include <cstdint>

#include "tools/timeline/analysis/index.hpp"

namespace weir::timeline {

/// In nanoseconds.
struct HiddenCopies {
  std::uint64_t copying = 0;  ///< time in which data were copied to the device
  std::uint64_t hidden = 0;   ///< the part of it in which the device also computed
};
/// Looks at the works of a device within `during`. Kernels and operations compute; copies of any
/// direction and memory fills do not. Copies that overlap count once, and so do computations.
[[nodiscard]] HiddenCopies hidden_copies(const Index& index, DeviceKey device, Span during);

}  // namespace weir::timeline
