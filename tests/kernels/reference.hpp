#pragma once

// References for the kernels: plain loops in double, and bounds on the difference of float.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/elementwise/elementwise.hpp"

namespace weir::reference {

inline constexpr double kUnitRoundoff = 0x1p-24;
inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// N(0, 1) numbers, the same in each run.
[[nodiscard]] inline std::vector<float> random_numbers(std::size_t count, std::uint64_t seed) {
  std::vector<float> numbers(count);
  fill_normal(seed, 0, numbers);
  return numbers;
}

/// An output whose every element must be written.
[[nodiscard]] inline std::vector<float> unwritten(std::size_t count) {
  return std::vector<float>(count, kNan);
}

/// The one rounding of a float operation. In double, products of floats are exact, and the second
/// rounding of a sum is harmless (53 >= 2 * 24 + 2 bits).
[[nodiscard]] inline float rounded(double value) { return static_cast<float>(value); }

/// A number in double and the largest allowed difference of a float result.
struct Bounded {
  double value = 0;
  double error = 0;
};

/// A row-major matrix, read as its transpose when `transposed`.
struct Matrix {
  const std::vector<float>& elements;
  std::size_t stride = 0;
  bool transposed = false;

  [[nodiscard]] double at(std::size_t row, std::size_t column) const {
    return static_cast<double>(transposed ? elements[column * stride + row]
                                          : elements[row * stride + column]);
  }
};

/// sum_i a(row, i) b(i, column), i < k. For any order of BLAS's additions, fused or not, k products
/// and sums err by at most (k + 1) u sum |a b|, with 1 % for the terms of higher order.
[[nodiscard]] inline Bounded dot(const Matrix& a, const Matrix& b, std::size_t row,
                                 std::size_t column, std::size_t k) {
  Bounded result;
  for (std::size_t i = 0; i < k; ++i) {
    const double product = a.at(row, i) * b.at(i, column);
    result.value += product;
    result.error += product < 0 ? -product : product;
  }
  result.error *= 1.01 * kUnitRoundoff * static_cast<double>(k + 1);
  return result;
}

/// Expects each slope to be the central difference of `scalar`, which is computed in double from
/// `inputs`. So a mistake that a gradient and its formula have in common shows.
template <typename Scalar>
void expect_slopes(const std::vector<float>& slopes, std::vector<float>& inputs,
                   const Scalar& scalar, double tolerance) {
  constexpr float kStep = 0x1p-10F;
  ASSERT_EQ(slopes.size(), inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const float before = inputs[i];
    inputs[i] = before + kStep;
    const double above = scalar();
    const auto right = static_cast<double>(inputs[i]);
    inputs[i] = before - kStep;
    const double below = scalar();
    const double width = right - static_cast<double>(inputs[i]);
    inputs[i] = before;
    EXPECT_NEAR(slopes[i], (above - below) / width, tolerance) << i;
  }
}

}  // namespace weir::reference
