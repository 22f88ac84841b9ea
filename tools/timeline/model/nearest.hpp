#pragma once

#include <cstdint>

namespace weir::timeline {

/// Rounds `value`, from 0 to 2^62, to the nearest whole number; halves round up. Replaces
/// std::llround, because libweir.so must not need the math library.
[[nodiscard]] constexpr std::uint64_t nearest(double value) noexcept {
  return static_cast<std::uint64_t>(2 * value + 1) / 2;
}

}  // namespace weir::timeline
