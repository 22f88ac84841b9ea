#pragma once

// What a network's products are computed in.

#include <cstdint>
#include <optional>

#include "kernels/precision/half.hpp"

namespace weir {

/// Of the factors of a product. Its sums are float32 in every precision.
enum class Precision : std::uint8_t { kFloat32, kTf32, kBf16, kFp16 };

/// Returns the format of the factors' 16-bit copies, or nothing if the factors are floats.
[[nodiscard]] constexpr std::optional<HalfKind> half_kind(Precision precision) noexcept {
  if (precision == Precision::kBf16) return HalfKind::kBf16;
  if (precision == Precision::kFp16) return HalfKind::kFp16;
  return std::nullopt;
}

}  // namespace weir
