#pragma once

#include <cstdint>

namespace weir::timeline {

/// The whole number nearest to `value`, which is from 0 to 2^62; halves go up. libweir.so must not
/// need the mathematical library, which std::llround is in.
[[nodiscard]] constexpr std::uint64_t nearest(double value) noexcept {
  return static_cast<std::uint64_t>(2 * value + 1) / 2;
}

}  // namespace weir::timeline
