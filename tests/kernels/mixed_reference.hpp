#pragma once

// Factors in a precision, and how far a product of them may be from the exact one.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/blas/blas.hpp"
#include "kernels/precision/precision.hpp"
#include "tests/kernels/reference.hpp"

namespace weir::reference {

inline constexpr std::array<HalfKind, 2> kEachHalfKind{HalfKind::kBf16, HalfKind::kFp16};

[[nodiscard]] inline std::vector<std::uint16_t> words_of(const std::vector<float>& x,
                                                         HalfKind kind) {
  std::vector<std::uint16_t> words(x.size());
  to_half(x, words, kind);
  return words;
}

[[nodiscard]] inline std::vector<float> floats_of(const std::vector<std::uint16_t>& words,
                                                  HalfKind kind) {
  std::vector<float> x(words.size());
  std::ranges::transform(words, x.begin(), [kind](std::uint16_t word) {
    return kind == HalfKind::kBf16 ? float_of_bf16(word) : float_of_fp16(word);
  });
  return x;
}

[[nodiscard]] inline std::vector<float> tf32_of(std::vector<float> x) {
  for (float& value : x) value = tf32_of_float(value);
  return x;
}

/// Half the distance of 1 to the next number: the relative error of a number rounded to nearest.
[[nodiscard]] inline double roundoff_of(HalfKind kind) {
  return kind == HalfKind::kBf16 ? 0x1p-8 : 0x1p-11;
}
/// Half the distance of the smallest numbers.
[[nodiscard]] inline double smallest_step_of(HalfKind kind) {
  return kind == HalfKind::kBf16 ? 0x1p-134 : 0x1p-25;
}

/// `sum`, rounded to a word.
[[nodiscard]] inline Bounded as_word(Bounded sum, HalfKind kind) {
  const double larger = std::abs(sum.value) + sum.error;
  return {sum.value, sum.error + larger * roundoff_of(kind) + smallest_step_of(kind)};
}

/// An element of alpha * op(a) * op(b) + beta * before, whose sum errs by `looser` times `dot`'s
/// bound. `a` and `b` are what is multiplied, as floats.
struct Product {
  GemmShape shape;
  GemmOptions options;
  const std::vector<float>& a;
  const std::vector<float>& b;
  const std::vector<float>& before;
  double looser = 1;

  [[nodiscard]] Matrix left() const {
    const bool turned = options.a == Transpose::kYes;
    return {a, turned ? shape.m : shape.k, turned};
  }
  [[nodiscard]] Matrix right() const {
    const bool turned = options.b == Transpose::kYes;
    return {b, turned ? shape.k : shape.n, turned};
  }

  [[nodiscard]] Bounded at(std::size_t i) const {
    const Bounded product = dot(left(), right(), i / shape.n, i % shape.n, shape.k);
    const double value = static_cast<double>(options.alpha) * product.value;
    // With beta = 0 what was there does not count, and may be a NaN.
    const double old =
        options.beta == 0 ? 0 : static_cast<double>(options.beta) * static_cast<double>(before[i]);
    return {value + old, std::abs(static_cast<double>(options.alpha)) * product.error * looser +
                             4 * kUnitRoundoff * (std::abs(value) + std::abs(old))};
  }

  /// The sum of |alpha a b|, for errors that are relative to it.
  [[nodiscard]] double sizes_at(std::size_t i) const {
    double sum = 0;
    for (std::size_t p = 0; p < shape.k; ++p) {
      sum += std::abs(left().at(i / shape.n, p) * right().at(p, i % shape.n));
    }
    return std::abs(static_cast<double>(options.alpha)) * sum;
  }
};

}  // namespace weir::reference
