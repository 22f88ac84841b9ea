#pragma once

// Factors in a precision, and how far a product of them may be from the exact one.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/blas/blas.hpp"
#include "kernels/precision/convert.hpp"
#include "kernels/precision/precision.hpp"
#include "tests/kernels/reference.hpp"

namespace weir::reference {

inline constexpr std::size_t kHalfKinds = 2;
inline constexpr HalfKind kEachHalfKind[kHalfKinds] = {HalfKind::kBf16, HalfKind::kFp16};

[[nodiscard]] inline std::vector<std::uint16_t> words_of(const std::vector<float>& x,
                                                         HalfKind kind) {
  std::vector<std::uint16_t> words(x.size());
  to_half(x, words, kind);
  return words;
}

[[nodiscard]] inline std::vector<float> floats_of(const std::vector<std::uint16_t>& words,
                                                  HalfKind kind) {
  std::vector<float> x(words.size());
  from_half(words, x, kind);
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

  [[nodiscard]] Bounded at(std::size_t i) const {
    const bool a_turned = options.a == Transpose::kYes;
    const bool b_turned = options.b == Transpose::kYes;
    const Bounded product =
        dot({a, a_turned ? shape.m : shape.k, a_turned},
            {b, b_turned ? shape.k : shape.n, b_turned}, i / shape.n, i % shape.n, shape.k);
    const auto alpha = static_cast<double>(options.alpha);
    const double old =
        options.beta == 0 ? 0 : static_cast<double>(options.beta) * static_cast<double>(before[i]);
    return {alpha * product.value + old,
            std::abs(alpha) * product.error * looser +
                4 * kUnitRoundoff * (std::abs(alpha * product.value) + std::abs(old))};
  }
};

/// The sum of |a b| of an element, for bounds that are relative to it.
[[nodiscard]] inline double sum_of_sizes(const Product& product, std::size_t i) {
  const double error_of_k = 1.01 * kUnitRoundoff * static_cast<double>(product.shape.k + 1);
  Product plain = product;
  plain.options.alpha = 1;
  plain.options.beta = 0;
  const Bounded sum = plain.at(i);
  return (sum.error - 4 * kUnitRoundoff * std::abs(sum.value)) / (error_of_k * product.looser);
}

}  // namespace weir::reference
