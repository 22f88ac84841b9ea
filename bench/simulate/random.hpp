#pragma once

// Random numbers that are the same with every standard library.

#include <chrono>
#include <cmath>
#include <cstdint>
#include <numbers>

namespace weir::simulate {

/// Since the simulated run began; also differences.
using Time = std::chrono::nanoseconds;

/// Returns `time` times `factor`, rounded.
[[nodiscard]] inline Time scaled(Time time, double factor) {
  return Time(std::llround(static_cast<double>(time.count()) * factor));
}

/// SplitMix64 (Steele, Lea, Flood 2014).
class Random {
 public:
  explicit Random(std::uint64_t seed) noexcept : state_(seed) {}

  [[nodiscard]] std::uint64_t next() noexcept {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15U;
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31U);
  }
  /// From 0, which it may be, to 1, which it is not.
  [[nodiscard]] double uniform() noexcept { return static_cast<double>(next() >> 11U) * 0x1p-53; }
  /// Mean 0, deviation 1 (Box and Muller 1958).
  [[nodiscard]] double normal() noexcept {
    const double radius = std::sqrt(-2 * std::log(1 - uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }

 private:
  std::uint64_t state_;
};

}  // namespace weir::simulate
