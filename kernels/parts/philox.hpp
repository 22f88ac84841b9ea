#pragma once

// Philox 4x32-10, a counter-based random number generator: four random words are a pure function of
// a counter and a key. So every element of a tensor can be drawn alone, in any order, on any
// device.
//
// Source: J. Salmon, M. Moraes, R. Dror, D. Shaw, "Parallel random numbers: as easy as 1, 2, 3",
// SC'11, https://doi.org/10.1145/2063384.2063405 (constants and rounds: section 3.3). The
// known-answer vectors in tests/kernels/parts_test.cpp are those of Random123 (`kat_vectors`).

#include <cstdint>

#include "kernels/parts/host_device.hpp"

namespace weir {

/// A counter or a result: four words, `x` the first.
struct PhiloxWords {
  std::uint32_t x = 0;
  std::uint32_t y = 0;
  std::uint32_t z = 0;
  std::uint32_t w = 0;

  friend constexpr bool operator==(const PhiloxWords&, const PhiloxWords&) noexcept = default;
};

struct PhiloxKey {
  std::uint32_t x = 0;
  std::uint32_t y = 0;
};

inline constexpr int kPhiloxRounds = 10;
inline constexpr std::uint32_t kPhiloxMultiplier0 = 0xD2511F53U;
inline constexpr std::uint32_t kPhiloxMultiplier1 = 0xCD9E8D57U;
inline constexpr std::uint32_t kPhiloxWeyl0 = 0x9E3779B9U;  // the golden ratio
inline constexpr std::uint32_t kPhiloxWeyl1 = 0xBB67AE85U;  // sqrt(3) - 1

/// One round. Bijective in the counter for a fixed key.
[[nodiscard]] WEIR_HOST_DEVICE constexpr PhiloxWords philox_round(PhiloxWords counter,
                                                                  PhiloxKey key) noexcept {
  const std::uint64_t product0 = std::uint64_t{kPhiloxMultiplier0} * counter.x;
  const std::uint64_t product1 = std::uint64_t{kPhiloxMultiplier1} * counter.z;
  return {static_cast<std::uint32_t>(product1 >> 32U) ^ counter.y ^ key.x,
          static_cast<std::uint32_t>(product1),
          static_cast<std::uint32_t>(product0 >> 32U) ^ counter.w ^ key.y,
          static_cast<std::uint32_t>(product0)};
}

/// Four independent, uniform 32-bit words for (counter, key). Thread-safe, cannot fail.
[[nodiscard]] WEIR_HOST_DEVICE constexpr PhiloxWords philox4x32(PhiloxWords counter,
                                                                PhiloxKey key) noexcept {
  for (int round = 0; round < kPhiloxRounds; ++round) {
    counter = philox_round(counter, key);
    key.x += kPhiloxWeyl0;
    key.y += kPhiloxWeyl1;
  }
  return counter;
}

}  // namespace weir
